"""The table of docs/choose/which-index.md, of the recorded figure `index_kinds` of subject `face`."""
from .markdown import table
from .reliability import BEGIN, END

PAGE = "choose/which-index.md"
DATA = {"sift": "1,000,000 SIFT descriptors of 128 bytes (uint8), squared Euclidean distance",
        "text": "100,000 sentence embeddings of 384 float32, cosine distance"}


def tables(record):
    lines = [f"Every kind at a target recall of 0.95, searched with nothing but k = 10. A batch is all 10,000 queries in a call, on "
             f"{record['details']['reports'][0]['cpus']} CPUs; latency is of one query at a time on one thread. Measured on {record['machine']}, "
             f"{record['date']}, nearwise {record['versions']['nearwise']}: `{record['command']} --record`.", ""]
    for name, title in DATA.items():
        rows = [[f"`{each['kind']}`" if "," not in each["kind"] else "`{}`, `{}`".format(*each["kind"].split(", ")),
                 f"{each['build_seconds']:.1f} s", f"{each['bytes_per_vector']:.0f}", f"{each['recall']:.3f}",
                 f"{each['batch_queries_per_second']:,}", f"{each['p50_us']:.0f} us", f"{each['p99_us']:.0f} us"]
                for each in record["details"]["reports"] if each["data"] == name]
        lines += [f"{title}:", "", *table(["kind", "build", "bytes per vector", "recall@10", "queries/s, batch", "latency, median",
                                           "99th percentile"], rows), ""]
    return "\n".join([BEGIN, "", *lines, END])


def page(text, record):
    """The page with the tables of a record in the place of the earlier ones; without a record it stays as it is."""
    if record is None:
        return text
    before, _, rest = text.partition(BEGIN)
    return before + tables(record) + rest.partition(END)[2]
