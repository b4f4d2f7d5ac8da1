import _ from "lodash";

const orders = [
  { region: "north", amount: 120 },
  { region: "south", amount: 80 },
  { region: "north", amount: 99 },
];
globalThis.result = {
  totals: _.mapValues(_.groupBy(orders, "region"), (group) => _.sumBy(group, "amount")),
  chunks: _.chunk([1, 2, 3, 4, 5], 2),
};
