"""The frames that typed.py sends, and where they belong."""
import numpy as np

ROWS, COLUMNS = 32, 40
DATASETS = ["/exchange/data", "/exchange/data_white", "/exchange/data_dark"]


def pixels(frame):
    return (np.arange(ROWS * COLUMNS, dtype="u8") * (frame + 7) + frame).astype("<u2").reshape(ROWS, COLUMNS)


def dataset_of(image):
    return DATASETS[{3: 1, 4: 1, 8: 2}.get(image % 10, 0)]
