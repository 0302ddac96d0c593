/* SPDX-FileCopyrightText: The Holdfast Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What holdfast._C gives to other extension modules: the client's core as a
 * table of C functions. holdfast_torch is built by another compiler, against
 * another C++ library and Abseil, so nothing of C++ crosses this line.
 *
 * holdfast._C._client_api is a PyCapsule of that name which holds a
 * `const HfClientApi*`; it lives as long as the process.
 *
 * Errors: functions that can fail return 0 or a code of absl::StatusCode, and
 * write the text into *error. Nothing throws.
 * Ownership: an HfTensor* that a function returns is one reference, which
 * `release` gives back. Arguments are borrowed.
 * Thread-safety: every function from any thread, without the GIL unless it
 * says otherwise. Only read, synchronize, sizes and a submission that is too
 * far ahead wait.
 */
#ifndef HOLDFAST_TORCH_CLIENT_CLIENT_API_H_
#define HOLDFAST_TORCH_CLIENT_CLIENT_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a function changes; new ones are added at the end. */
#define HF_CLIENT_API_VERSION 1
#define HF_CLIENT_API_NAME "holdfast._C._client_api"
#define HF_MAX_RANK 64

typedef struct HfTensor HfTensor;   /* a tensor of a session */
typedef struct HfSession HfSession; /* borrowed: lives as long as the process */

typedef struct HfError {
  int code; /* absl::StatusCode */
  char text[2048];
} HfError;

enum HfAttrKind {
  HF_NONE = 0,
  HF_BOOL = 1,
  HF_INT = 2,
  HF_FLOAT = 3,
  HF_DTYPE = 4, /* `integer`: the number of ops/dtype.h */
  HF_INTS = 5,
  HF_STRING = 6
};

typedef struct HfAttr {
  int32_t slot;
  int32_t kind;
  int64_t integer;     /* HF_BOOL, HF_INT, HF_DTYPE; HF_INTS: how many */
  double real;         /* HF_FLOAT */
  const void* address; /* HF_INTS: const int64_t*; HF_STRING: const char* */
} HfAttr;

/* Sizes and strides in elements; the arrays live as long as the tensor. */
typedef struct HfSpec {
  int32_t dtype;
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides;
  int64_t offset;
  int64_t elements;
} HfSpec;

typedef struct HfClientApi {
  int32_t version;

  /* The session where new tensors are made; connects on first use and takes
   * the GIL for that. Null with *error set. */
  HfSession* (*session)(HfError* error);
  int (*synchronize)(HfSession* session, HfError* error);
  int (*set_seed)(HfSession* session, uint64_t seed, HfError* error);

  /* The op table: -1 where there is no such op, slot or parameter. */
  int32_t (*find_op)(const char* name);
  int32_t (*outputs_of)(int32_t op);
  int32_t (*tensor_slot)(int32_t op, const char* parameter);
  int32_t (*attr_slot)(int32_t op, const char* parameter);

  /* Submits an op outside of the session's own graph. `inputs` in slot order,
   * null where absent. `outputs` receives outputs_of(op) tensors, of an
   * in-place call one. Random ops draw from the session's stream. */
  int (*apply)(HfSession* session, int32_t op, const HfAttr* attrs,
               int32_t num_attrs, HfTensor* const* inputs, int32_t num_inputs,
               int32_t inplace, HfTensor** outputs, HfError* error);

  /* A tensor of `elements` in row-major order, which are copied. */
  HfTensor* (*put)(HfSession* session, int32_t dtype, int32_t rank,
                   const int64_t* shape, const void* elements, HfError* error);
  /* Waits, and copies the elements in row-major order into `to`. */
  int (*read)(HfTensor* tensor, void* to, size_t bytes, HfError* error);
  /* Waits only for a tensor whose sizes depend on data. */
  int (*spec)(HfTensor* tensor, HfSpec* spec, HfError* error);

  HfTensor* (*retain)(HfTensor* tensor);
  void (*release)(HfTensor* tensor);

  /* With the GIL held: a holdfast.Tensor of the tensor (a new reference, null
   * with Python's error set), and the tensor of one (null with Python's error
   * set where it is none). */
  void* (*to_python)(HfTensor* tensor);
  HfTensor* (*from_python)(void* object);

  /* Equal for tensors that share memory; never 0. As long as both live. */
  uintptr_t (*memory_of)(HfTensor* tensor);
} HfClientApi;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HOLDFAST_TORCH_CLIENT_CLIENT_API_H_ */
