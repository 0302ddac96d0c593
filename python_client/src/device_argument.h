// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// `device=` of Python calls as a device's number (ops/place_op.h), and what it
// is where a program does not say: torch.set_default_device, torch.cuda's
// current device. All of it is guarded by the GIL.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_DEVICE_ARGUMENT_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_DEVICE_ARGUMENT_H_

#include <string>

#include "client/session.h"
#include "python_client/src/python.h"

namespace holdfast::python {

// "meta" among the numbers of devices: its tensors are those of a session of
// their own (client/meta_session.h), where their device is 0.
inline constexpr int kMetaDevice = -1;
client::Session* MetaSession();  // null with an error set

// The number by which programs know the tensor's device.
int DeviceOf(const client::Tensor& tensor);

// The session that makes tensors on a device, and how that calls it.
client::Session* SessionOfDevice(int* number);

// The device of tensors that are made without a word about it: a number, "cpu"
// unless the program changed it.
int DefaultDevice();

// None, an int, "cpu", "cuda:1" or a device object. False with a Python error
// set where the default session's daemon has no such device.
bool ParseDevice(PyObject* device, int* number);

// The tensor there: itself, or a copy that gradients flow through. Null with an
// error set.
client::Tensor MoveTo(client::Tensor tensor, int number);

// "cpu", "cuda:0"; the session's own name for what it has where it has no GPU.
std::string DeviceName(const client::Session& session, int number);

// Where bytes that this thread's caller sends become tensors, while it lives.
class ScopedPutDevice {
 public:
  explicit ScopedPutDevice(int number);
  ~ScopedPutDevice();
  ScopedPutDevice(const ScopedPutDevice&) = delete;
  ScopedPutDevice& operator=(const ScopedPutDevice&) = delete;
  // What Session::Put is to be told now.
  static int now();

 private:
  const int outer_;
};

// _C.device_number(device), _C.set_default_device(number),
// _C.set_current_gpu(index), _C.current_gpu(), _C.move_to(tensor, number).
void AppendDeviceFunctions(std::vector<PyMethodDef>* functions);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_DEVICE_ARGUMENT_H_
