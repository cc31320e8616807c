"""scikit-learn's own checks of every estimator of nearwise.sklearn: one JSON line for each, with the checks that fail.

    python check_estimators.py
"""

import json
import warnings

import nearwise.sklearn
from sklearn.utils.estimator_checks import check_estimator

# n_jobs: hundreds of small fits gain nothing from threads.
ESTIMATORS = {name: getattr(nearwise.sklearn, name) for name in nearwise.sklearn.__all__}


def main():
    warnings.simplefilter("ignore")
    for name, estimator in ESTIMATORS.items():
        checks = check_estimator(estimator(n_jobs=1), on_skip=None, on_fail=None)
        failed = [f"{check['check_name']}: {check['exception']}" for check in checks if check["status"] == "failed"]
        skipped = [check["check_name"] for check in checks if check["status"] in ("skipped", "xfail")]
        print(json.dumps({"estimator": name, "checks": len(checks), "failed": failed, "skipped": skipped}), flush=True)


if __name__ == "__main__":
    main()
