"""What a child process runs, by its path.

`ldprecover_server` itself imports the whole server, with its web framework and its database. A
child has a package of that name with nothing in it but the way to its modules, so that it begins in
a tenth of a second and in little memory.
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
