"""The tables of docs/choose/which-index.md, of the recorded figures `index_kinds_*` of subject `face`."""
from .markdown import table
from .reliability import BEGIN, END

PAGE = "choose/which-index.md"
DATA = {"index_kinds_sift": "1,000,000 SIFT descriptors of 128 bytes (uint8), squared Euclidean distance",
        "index_kinds_text": "100,000 sentence embeddings of 384 float32, cosine distance"}
HEAD = ["kind", "build", "bytes per vector", "recall@10", "queries/s, batch", "latency, median", "99th percentile"]


def row(report):
    return [", ".join(f"`{part}`" for part in report["kind"].split(", ")), f"{report['build_seconds']:.1f} s",
            f"{report['bytes_per_vector']:.0f}", f"{report['recall']:.3f}", f"{report['batch_queries_per_second']:,}",
            f"{report['p50_us']:.0f} us", f"{report['p99_us']:.0f} us"]


def tables(records):
    lines = []
    for name, title in DATA.items():
        if record := records.get(name):
            lines += [f"{title} ({record['machine']}, {record['date']}, nearwise {record['versions']['nearwise']}: "
                      f"`{record['command']}`):", "", *table(HEAD, map(row, record["details"]["reports"])), ""]
    return "\n".join([BEGIN, "", *lines, END])


def page(text, records):
    """The page with the tables of the records in the place of the earlier ones."""
    before, _, rest = text.partition(BEGIN)
    return before + tables(records) + rest.partition(END)[2]
