"""The program of a worker process, run by its path.

`ldprecover_server` imports the whole server with its web framework and database. A worker replaces
that package by an empty one with the same path, so it starts in 0.1 s and takes little memory.
"""

import sys
from pathlib import Path
from types import ModuleType

package = ModuleType("ldprecover_server")
package.__path__ = [str(Path(__file__).parents[1])]
sys.modules["ldprecover_server"] = package

from ldprecover_server.analysis.worker import main  # noqa: E402

if __name__ == "__main__":
    main()
