"""Every benchmark: `python -m bench`."""

from bench import ingest, kernels

if __name__ == "__main__":
    kernels.main()
    ingest.main()
