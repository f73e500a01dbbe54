"""Many machines: signals, columns and samples spread over the workers of a dask cluster.

| module | content |
|---|---|
| `workers` | the client; values that workers hold, and questions to all of them at once |
| `arrays` | `encode` of dask arrays, block by block |
| `sharded` | `Sharded`: a dictionary whose columns workers hold |
| `sums` | `ShardedSum`: an objective whose terms workers hold |

Dask is imported where it is used: without it nothing else changes.
"""
