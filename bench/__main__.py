"""Every benchmark: `python -m bench`."""

from bench import ingest, kernels, recoveries

if __name__ == "__main__":
    kernels.main()
    recoveries.main()
    ingest.main()
