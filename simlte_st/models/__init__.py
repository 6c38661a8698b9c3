"""From a name to a loaded model: finding, loading, converting, encoding, registration, ``SentenceTransformer``.

Nothing is imported here: ``import simlte_st`` registers the architectures by this room, and must not wait for torch.
"""
