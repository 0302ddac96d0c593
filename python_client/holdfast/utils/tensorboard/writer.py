# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The writer, over TensorBoard's own summaries and file format."""

import os
import socket
import time

import holdfast
from holdfast.errors import UnsupportedError
from holdfast.missing import module_getattr

__all__ = ["SummaryWriter"]


def _tensorboard():
    try:
        from tensorboard import summary
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError as error:
        raise ModuleNotFoundError(
            "torch.utils.tensorboard needs the package tensorboard: pip install "
            f"tensorboard ({error})",
            name="tensorboard",
        ) from None
    return summary, event_pb2, summary_pb2, EventFileWriter


def _number(value):
    return value.item() if hasattr(value, "item") else float(value)


def _array(value):
    import numpy

    if isinstance(value, holdfast.Tensor):
        value = value.detach().cpu().numpy()
    return numpy.asarray(value)


class SummaryWriter:
    """Writes scalars, texts, histograms and images that TensorBoard shows.

    `log_dir` is runs/<date>_<host><comment> by default. Values may be tensors, which
    are waited for. Needs the package tensorboard (ModuleNotFoundError). A context
    manager; not thread-safe.
    """

    def __init__(
        self,
        log_dir=None,
        comment="",
        purge_step=None,
        max_queue=10,
        flush_secs=120,
        filename_suffix="",
    ):
        parts = _tensorboard()
        self._summary, self._event_pb2, self._summary_pb2, writer = parts
        if not log_dir:
            now = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self._files = {}
        self._new_file = lambda folder: writer(
            folder, max_queue, flush_secs, filename_suffix
        )
        self._file("")

    def _file(self, name):
        if name not in self._files:
            folder = os.path.join(self.log_dir, name) if name else self.log_dir
            self._files[name] = self._new_file(folder)
        return self._files[name]

    def get_logdir(self):
        """The folder that is written into."""
        return self.log_dir

    def _add(self, values, global_step, walltime, file=""):
        event = self._event_pb2.Event(
            wall_time=time.time() if walltime is None else walltime,
            summary=self._summary_pb2.Summary(value=values),
        )
        if global_step is not None:
            event.step = int(_number(global_step))
        self._file(file).add_event(event)

    def _value(self, tag, **content):
        return self._summary_pb2.Summary.Value(tag=tag, **content)

    def add_scalar(
        self,
        tag,
        scalar_value,
        global_step=None,
        walltime=None,
        new_style=False,
        double_precision=False,
    ):
        """One number of a curve."""
        value = self._value(tag, simple_value=_number(scalar_value))
        self._add([value], global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """One number each of several curves in one picture."""
        for tag, scalar in tag_scalar_dict.items():
            value = self._value(main_tag, simple_value=_number(scalar))
            file = main_tag.replace("/", "_") + "_" + tag
            self._add([value], global_step, walltime, file)

    def add_histogram(
        self,
        tag,
        values,
        global_step=None,
        bins="tensorflow",
        walltime=None,
        max_bins=None,
    ):
        """How values are distributed."""
        import numpy

        flat = _array(values).astype(numpy.float64).reshape(-1)
        if flat.size == 0:
            raise ValueError("The input has no element.")
        count = max_bins or 64
        bins = bins if not isinstance(bins, str) else count
        counts, limits = numpy.histogram(flat, bins=bins)
        histogram = self._summary_pb2.HistogramProto(
            min=flat.min(),
            max=flat.max(),
            num=flat.size,
            sum=flat.sum(),
            sum_squares=flat.dot(flat),
            bucket_limit=limits[1:].tolist(),
            bucket=counts.tolist(),
        )
        self._add([self._value(tag, histo=histogram)], global_step, walltime)

    def add_image(
        self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"
    ):
        """An image: floats in [0, 1] or uint8; `dataformats` names its dimensions."""
        import io

        import numpy
        from PIL import Image

        image = _array(img_tensor)
        if image.dtype.kind == "f":
            image = (image * 255.0).clip(0, 255).astype(numpy.uint8)
        order = [
            dataformats.upper().index(c) for c in "HWC" if c in dataformats.upper()
        ]
        image = image.transpose(order)
        if image.ndim == 3 and image.shape[2] == 1:
            image = image[:, :, 0]
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "PNG")
        proto = self._summary_pb2.Summary.Image(
            height=image.shape[0],
            width=image.shape[1],
            colorspace=1 if image.ndim == 2 else image.shape[2],
            encoded_image_string=buffer.getvalue(),
        )
        self._add([self._value(tag, image=proto)], global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """A text, in Markdown."""
        metadata = self._summary_pb2.SummaryMetadata()
        metadata.plugin_data.plugin_name = "text"
        from tensorboard.compat.proto import tensor_pb2, tensor_shape_pb2, types_pb2

        tensor = tensor_pb2.TensorProto(
            dtype=types_pb2.DT_STRING,
            string_val=[text_string.encode()],
            tensor_shape=tensor_shape_pb2.TensorShapeProto(
                dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=1)]
            ),
        )
        value = self._value(tag + "/text_summary", tensor=tensor, metadata=metadata)
        self._add([value], global_step, walltime)

    def add_graph(self, model, input_to_model=None, verbose=False, **options):
        """Refused: no graph of a program is kept."""
        raise UnsupportedError(
            "holdfast has no SummaryWriter.add_graph: programs run as they are written "
            "and no graph of them is kept."
        )

    def flush(self):
        """Writes out what is waiting."""
        for file in self._files.values():
            file.flush()

    def close(self):
        """Writes out what is waiting and closes the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def __getattr__(self, name):
        if name.startswith("add_"):
            raise UnsupportedError(f"holdfast has no SummaryWriter.{name}.")
        raise AttributeError(name)


__getattr__ = module_getattr("torch.utils.tensorboard")
