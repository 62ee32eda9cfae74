#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of scikit-learn, LightGBM and XGBoost, made here from seeds: exported by
skl2onnx and onnxmltools, run on llvm by `pestle run` beside ONNX Runtime without
optimisation. Prints for each whether labels and scores are right and what a run of 1
row and of 1,000 takes, one thread; and the two times' ratio where ONNX Runtime's is
above 0.02 ms (below, Python's share of it is most).

    PESTLE_BUILD_DIR=build/release VENV/bin/python tests/models/run_ml_models.py [NAME...]

Needs, in an environment of its own: scikit-learn 1.9.1, skl2onnx 1.20.0, onnxmltools
1.16.0, lightgbm 4.7.0, xgboost 3.2.0, onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6.
--no-times leaves the times out. Exits with 1 when a model is wrong.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import onnxruntime as ort
from lightgbm import LGBMClassifier, LGBMRegressor
from onnxmltools import convert_lightgbm, convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType as MlFloat
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn import (calibration, cluster, compose, decomposition, discriminant_analysis,
                     ensemble, feature_selection, gaussian_process, impute, linear_model,
                     mixture, multiclass, naive_bayes, neighbors, neural_network, pipeline,
                     preprocessing, svm, tree)  # fmt: skip
from sklearn.datasets import make_classification, make_regression
from xgboost import XGBClassifier, XGBRegressor

warnings.filterwarnings("ignore")
PESTLE = os.path.join(os.environ["PESTLE_BUILD_DIR"], "pestle")
TIMES = "--no-times" not in sys.argv
WIDTH = 12
X, Y2 = make_classification(600, WIDTH, n_informative=8, random_state=1)
_, Y5 = make_classification(600, WIDTH, n_informative=8, n_classes=5, random_state=2)
Y5 = (Y5 + (X[:, 0] > 0)) % 5
XR, YR = make_regression(600, WIDTH, noise=1, random_state=3)
X, XR, YR = X.astype(np.float32), XR.astype(np.float32), (YR / YR.std()).astype(np.float32)
YM = np.stack([YR, -2 * YR + XR[:, 0], XR[:, 1]], 1)
NAMES = np.array(["setosa", "versicolor", "virginica", "grün", "other"])
HOLES = np.where(np.random.default_rng(4).random(X.shape) < 0.2, np.nan, X).astype(np.float32)
WORDS = np.random.default_rng(5).choice(["red", "green", "blue", "black"], (600, 3)).astype(object)


def pipe(*steps):
    return pipeline.make_pipeline(*steps)


def columns():
    """Numbers scaled and words encoded, as pipelines of tables do."""
    return compose.ColumnTransformer([
        ("n", preprocessing.StandardScaler(), list(range(4))),
        ("w", preprocessing.OneHotEncoder(handle_unknown="ignore"), [4, 5, 6])])  # fmt: skip


# Name: the model, what it is fitted to, and its input.
SK = {
    "scaler_logistic": (pipe(preprocessing.StandardScaler(), linear_model.LogisticRegression()), Y2, X),
    "logistic_5": (linear_model.LogisticRegression(max_iter=300), Y5, X),
    "logistic_names": (linear_model.LogisticRegression(max_iter=300), NAMES[Y5], X),
    "ridge_classifier": (linear_model.RidgeClassifier(), Y5, X),
    "sgd_classifier": (linear_model.SGDClassifier(loss="log_loss", random_state=0), Y5, X),
    "perceptron": (linear_model.Perceptron(), Y5, X),
    "linear": (linear_model.LinearRegression(), YR, XR),
    "linear_3": (linear_model.LinearRegression(), YM, XR),
    "lasso": (pipe(preprocessing.MinMaxScaler(), linear_model.Lasso(0.01)), YR, XR),
    "poisson": (linear_model.PoissonRegressor(), np.abs(YR), XR),
    "bayesian_ridge": (linear_model.BayesianRidge(), YR, XR),
    "tree": (tree.DecisionTreeClassifier(random_state=0), Y5, X),
    "tree_names": (tree.DecisionTreeClassifier(max_depth=5, random_state=0), NAMES[Y5], X),
    "tree_regressor": (tree.DecisionTreeRegressor(random_state=0), YR, XR),
    "forest_2": (ensemble.RandomForestClassifier(60, random_state=0), Y2, X),
    "forest_5": (ensemble.RandomForestClassifier(60, random_state=0), Y5, X),
    "forest_deep": (ensemble.RandomForestClassifier(100, random_state=0), NAMES[Y5], X),
    "forest_regressor": (ensemble.RandomForestRegressor(60, random_state=0), YR, XR),
    "extra_trees": (ensemble.ExtraTreesClassifier(40, random_state=0), Y5, X),
    "gradient_boosting": (ensemble.GradientBoostingClassifier(random_state=0), Y2, X),
    "gradient_boosting_5": (ensemble.GradientBoostingClassifier(n_estimators=40, random_state=0), Y5, X),
    "gradient_boosting_regressor": (ensemble.GradientBoostingRegressor(random_state=0), YR, XR),
    "ada_boost": (ensemble.AdaBoostClassifier(n_estimators=20, random_state=0), Y2, X),
    "bagging": (ensemble.BaggingClassifier(n_estimators=10, random_state=0), Y5, X),
    "isolation_forest": (ensemble.IsolationForest(n_estimators=20, random_state=0), None, X),
    "voting": (ensemble.VotingClassifier([("a", linear_model.LogisticRegression()),
                                          ("b", tree.DecisionTreeClassifier(max_depth=4, random_state=0))],
                                         voting="soft", flatten_transform=False), Y2, X),
    "stacking": (ensemble.StackingRegressor([("a", linear_model.Ridge()),
                                             ("b", tree.DecisionTreeRegressor(max_depth=4, random_state=0))]), YR, XR),
    "svc": (svm.SVC(), Y2, X),
    "svc_5": (svm.SVC(), Y5, X),
    "svc_probability": (svm.SVC(probability=True, random_state=0), Y5, X),
    "svc_poly": (svm.SVC(kernel="poly"), Y2, X),
    "linear_svc": (svm.LinearSVC(), Y5, X),
    "svr": (svm.SVR(), YR, XR),
    "nu_svr_linear": (svm.NuSVR(kernel="linear"), YR, XR),
    "one_class_svm": (svm.OneClassSVM(), None, X),
    "mlp": (pipe(preprocessing.StandardScaler(), neural_network.MLPClassifier((24, 16), max_iter=60, random_state=0)), Y5, X),
    "mlp_regressor": (pipe(preprocessing.RobustScaler(), neural_network.MLPRegressor(hidden_layer_sizes=(24,), max_iter=60, random_state=0)), YR, XR),
    "gaussian_nb": (naive_bayes.GaussianNB(), Y5, X),
    "bernoulli_nb": (naive_bayes.BernoulliNB(), Y5, X),
    "lda": (discriminant_analysis.LinearDiscriminantAnalysis(), Y5, X),
    "qda": (discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1), Y5, X),
    "knn": (neighbors.KNeighborsClassifier(5), Y5, X),
    "knn_regressor": (neighbors.KNeighborsRegressor(3), YR, XR),
    "kmeans": (cluster.KMeans(5, n_init=1, random_state=0), None, X),
    "mixture": (mixture.GaussianMixture(3, reg_covar=0.1, random_state=0), None, X),
    "gaussian_process": (gaussian_process.GaussianProcessRegressor(alpha=0.1), YR, XR),
    "pca_logistic": (pipe(decomposition.PCA(5), linear_model.LogisticRegression()), Y2, X),
    "poly_ridge": (pipe(preprocessing.PolynomialFeatures(2), linear_model.Ridge()), YR, XR),
    "imputer_forest": (pipe(impute.SimpleImputer(), ensemble.RandomForestClassifier(20, random_state=0)), Y5, HOLES),
    "normalizer": (pipe(preprocessing.Normalizer(), linear_model.LogisticRegression()), Y5, X),
    "binarizer": (pipe(preprocessing.Binarizer(threshold=0.2), naive_bayes.BernoulliNB()), Y2, X),
    "bins": (pipe(preprocessing.KBinsDiscretizer(4, encode="ordinal"), linear_model.LogisticRegression()), Y2, X),
    "select": (pipe(feature_selection.SelectKBest(k=4), linear_model.LogisticRegression()), Y5, X),
    "one_vs_rest": (multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), Y5, X),
    "calibrated": (calibration.CalibratedClassifierCV(tree.DecisionTreeClassifier(max_depth=4, random_state=0), cv=2), Y2, X),
    "words_one_hot": (pipe(preprocessing.OneHotEncoder(handle_unknown="ignore"), linear_model.LogisticRegression()), NAMES[Y5], WORDS),
    "words_ordinal": (pipe(preprocessing.OrdinalEncoder(), tree.DecisionTreeClassifier(max_depth=5, random_state=0)), Y2, WORDS),
}  # fmt: skip
BOOSTED = {
    "lightgbm": (LGBMClassifier(n_estimators=40, verbose=-1), Y2, X, convert_lightgbm),
    "lightgbm_5": (LGBMClassifier(n_estimators=20, verbose=-1), Y5, X, convert_lightgbm),
    "lightgbm_holes": (LGBMClassifier(n_estimators=20, verbose=-1), Y2, HOLES, convert_lightgbm),
    "lightgbm_regressor": (LGBMRegressor(n_estimators=60, verbose=-1), YR, XR, convert_lightgbm),
    "lightgbm_names": (LGBMClassifier(n_estimators=10, verbose=-1), NAMES[Y5], X, convert_lightgbm),
    "xgboost": (XGBClassifier(n_estimators=40, n_jobs=1), Y2, X, convert_xgboost),
    "xgboost_5": (XGBClassifier(n_estimators=20, n_jobs=1), Y5, X, convert_xgboost),
    "xgboost_holes": (XGBRegressor(n_estimators=30, n_jobs=1), YR, HOLES, convert_xgboost),
    "xgboost_regressor": (XGBRegressor(n_estimators=60, n_jobs=1), YR, XR, convert_xgboost),
}  # fmt: skip


def make(name):
    """The model's bytes and its inputs by name, 1,000 rows."""
    if name == "table":
        data = np.concatenate([X[:, :4].astype(object), WORDS], 1)
        model = pipe(columns(), ensemble.GradientBoostingClassifier(n_estimators=20, random_state=0))
        model.fit(data, NAMES[Y5])
        kinds = [(f"n{i}", FloatTensorType([None, 1])) for i in range(4)]
        kinds += [(f"w{i}", StringTensorType([None, 1])) for i in range(3)]
        text = to_onnx(model, initial_types=kinds, options={"zipmap": False})
        feeds = {f"n{i}": X[:, i:i + 1] for i in range(4)} | {f"w{i}": WORDS[:, i:i + 1] for i in range(3)}
        return text.SerializeToString(), {k: grow(v) for k, v in feeds.items()}
    if name in BOOSTED:
        model, y, x, convert = BOOSTED[name]
        model.fit(x, y)
        extra = {"zipmap": False} if convert is convert_lightgbm else {}
        text = convert(model, initial_types=[("X", MlFloat([None, x.shape[1]]))], **extra)
        return text.SerializeToString(), {text.graph.input[0].name: grow(x)}
    model, y, x = SK[name]
    model.fit(x, y)
    kind = StringTensorType if x.dtype == object else FloatTensorType
    zips = hasattr(model, "predict_proba") and not isinstance(model, mixture.GaussianMixture)
    options = {"zipmap": False} if zips else None
    text = to_onnx(model, initial_types=[("X", kind([None, x.shape[1]]))], options=options,
                   target_opset={"": 18, "ai.onnx.ml": 3})  # fmt: skip
    return text.SerializeToString(), {"X": grow(x)}


def grow(x):
    r = np.random.default_rng(6)
    more = x[r.integers(0, len(x), 1000)]
    return more if x.dtype == object else (more + 0.1 * r.standard_normal(more.shape)).astype(np.float32)


def session(data):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def time_ort(s, feeds):
    times = []
    end = time.perf_counter() + 0.4
    while len(times) < 5 or time.perf_counter() < end:
        begin = time.perf_counter()
        s.run(None, feeds)
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


def pestle(folder, feeds, *options):
    command = [PESTLE, "run", folder / "m.onnx", "--device", "llvm", "--no-cache", *options]
    for name, x in feeds.items():
        np.save(folder / f"{name}.npy", x.astype(str) if x.dtype == object else x)
        command += ["--input", f"{name}={folder}/{name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[:400])
    return done.stdout


def time_pestle(folder, feeds):
    text = pestle(folder, feeds, "--threads", "1", "--bench", "60")
    return min(json.loads(text.strip().splitlines()[-1])["run_ms"])


# Distances from sums of squares that cancel, in f32: of a Gaussian process in f64 Pestle
# is 0.0010 off at most, ONNX Runtime 0.0019.
LOOSER = {"gaussian_process": 30}


def differs(got, want, looser=1):
    """Of labels a row in a thousand may lie on an edge, where sums are rounded apart."""
    if isinstance(want, list):  # ZipMap's; Pestle has the scores in columns
        want = [list(row.values()) for row in want]
    want = np.asarray(want, got.dtype if isinstance(want, list) else None)
    if got.shape != want.shape:
        return f"shape {got.shape}, right {want.shape}"
    if want.dtype.kind == "f":
        scale = 1e-3 * max(1, float(np.nanmax(np.abs(want), initial=0)))
        near = np.isclose(got, want, rtol=1e-3, atol=scale * 0.1 * looser, equal_nan=True)
    else:
        near = got == want
    if near.mean() >= 0.998:
        return None
    at = tuple(np.argwhere(~near)[0])
    return f"{np.sum(~near)} of {near.size} differ, at {at} {got[at]!r}, right {want[at]!r}"


def try_one(name):
    data, feeds = make(name)
    s = session(data)
    want = s.run(None, feeds)
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        (folder / "m.onnx").write_bytes(data)
        pestle(folder, feeds, "--outputs", folder / "out")
        got = [np.load(folder / "out" / f"output_{i}.npy") for i in range(len(want))]
        for g, w in zip(got, want):
            what = differs(g, w, LOOSER.get(name, 1))
            if what:
                return what, []
        times = []
        for rows in (1, 1000) if TIMES else ():
            few = {k: v[:rows] for k, v in feeds.items()}
            times.append((rows, time_pestle(folder, few), time_ort(s, few)))
        return None, times


def main():
    names = [a for a in sys.argv[1:] if not a.startswith("--")] or [*SK, *BOOSTED, "table"]
    right, wrong, ratios = 0, [], []
    for name in names:
        try:
            what, times = try_one(name)
        except Exception as e:  # noqa: BLE001
            what, times = f"{type(e).__name__}: {str(e)[:300]}", []
        right += not what
        if what:
            wrong.append(name)
        shown = ""
        for rows, own, peer in times:
            ratio = own / peer
            shown += f"  {rows:4d}: {own:.4f} / {peer:.4f} ms"
            if peer > 0.02:
                ratios.append(ratio)
                shown += f" = {ratio:.2f}"
        print(f"{'right' if not what else 'WRONG'} {name:28s}{shown or '  ' + (what or '')}", flush=True)
    mean = np.exp(np.mean(np.log(ratios))) if ratios else 0
    print(f"{right} right, {len(wrong)} wrong; {len(ratios)} ratios, geometric mean {mean:.2f}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
