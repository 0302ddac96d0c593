# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What is Holdfast's own: sessions, kept and published tensors, memory, errors."""

import holdfast
from holdfast import nn
from holdfast.errors import HoldfastError, NotFoundError

session = holdfast.current_session()
print(session.transport.upper(), session.device, session.closed)
model = nn.Linear(3, 2)
holdfast.keep("model", model)
kept = holdfast.kept("model")
model.load_state_dict(kept)
version = holdfast.publish("weights", model.state_dict())
found = holdfast.lookup("weights")
print(found["weight"].shape, [entry.name for entry in holdfast.published()])
holdfast.unpublish("weights")
try:
    holdfast.lookup("weights")
except NotFoundError as error:
    print(str(error)[:20])
try:
    print(holdfast.ones(2, 3) @ holdfast.ones(2, 3))
except HoldfastError as failure:
    print(type(failure).__name__, failure.lineno)
holdfast.synchronize()
session.synchronize()
print(holdfast.memory_allocated() >= 0, holdfast.__version__)
