"""Estimators with the interfaces of scikit-learn's own.

Needs scikit-learn, which nothing else here does: ``pip install nearwise[sklearn]``.
"""

from nearwise.sklearn._kmeans import KMeans
from nearwise.sklearn._nearest_neighbors import NearestNeighbors
from nearwise.sklearn._transformer import KNeighborsTransformer

__all__ = ["KMeans", "KNeighborsTransformer", "NearestNeighbors"]
