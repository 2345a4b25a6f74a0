"""Every benchmark: `python -m bench`."""

import sys

from bench import estimates, ingest, kernels, recoveries

if __name__ == "__main__":
    differ = estimates.main()
    kernels.main()
    recoveries.main()
    ingest.main()
    sys.exit(differ)
