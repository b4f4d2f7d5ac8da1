import io

import numpy as np
import pandas as pd

CSV = """region,month,amount
north,1,120.50
south,1,80.25
north,2,99.50
south,2,140.75
north,3,
"""

table = pd.read_csv(io.StringIO(CSV))
totals = table.groupby("region")["amount"].sum()
slope = np.polyfit(table["month"][:4], table["amount"][:4], 1)[0]
result = {
    "totals": totals.round(2).to_dict(),
    "missing": int(table["amount"].isna().sum()),
    "rising": bool(slope > 0),
    "identity": np.linalg.inv(np.array([[2.0, 0.0], [0.0, 4.0]])).tolist(),
}
