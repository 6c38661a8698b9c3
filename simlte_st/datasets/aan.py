"""ACL Anthology Network (Radev et al., 2009): does one paper cite the other? The Long Range Arena's retrieval task."""

from __future__ import annotations

from simlte_st.datasets.card import Card
from simlte_st.datasets.citations import CitationSet

SET = CitationSet(
    Card(
        name="aan",
        title="ACL Anthology Network, document retrieval task of the Long Range Arena",
        home="https://github.com/google-research/long-range-arena (lra_release.gz)",
        licence="CC BY 4.0 for the papers of the ACL Anthology (CC BY-NC-SA 3.0 before 2016)",
        citation="Radev, Muthukrishnan and Qazvinian. The ACL Anthology Network Corpus. 2009. The task: Tay et al. "
        "Long Range Arena. ICLR 2021.",
        forms=(
            "the folder tsv_data with new_aan_pairs.train.tsv, new_aan_pairs.eval.tsv and new_aan_pairs.test.tsv",
            "a folder with a table aan_papers (id, text) and a table aan_citations (citing, cited), as .parquet, "
            ".jsonl or .csv",
        ),
    ),
    pair_files={
        "new_aan_pairs.train.tsv": "train",
        "new_aan_pairs.eval.tsv": "validation",
        "new_aan_pairs.test.tsv": "test",
    },
    papers=("aan_papers", "papers"),
    links=("aan_citations", "citations", "links"),
)
