"""Models: find, load, convert and encode them; ``SentenceTransformer``.

Nothing is imported here, because ``import simlte_st`` must not wait for torch.
"""
