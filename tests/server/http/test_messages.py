"""The messages are ready for threads before there are any."""

import subprocess
import sys

# A type whose fields msgspec has to find out asks a function of its own for them.
_PROGRAM = """
import sys
from msgspec import Struct, json
from ldprecover_server.http import messages

asked = set()
sys.setprofile(lambda frame, event, given: asked.add(frame.f_code.co_name))
for name in messages.__all__:
    json.Decoder(getattr(messages, name))
known = "get_class_annotations" not in asked
class Unknown(Struct):
    field: int
json.Decoder(Unknown)
sys.setprofile(None)
print(known, "get_class_annotations" in asked)
"""


def test_the_fields_of_every_type_are_known_once_it_can_be_used() -> None:
    """Two threads that had them found out at once would end the process: msgspec is not safe
    there.
    """
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True True\n"
