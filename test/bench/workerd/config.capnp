# workerd with one worker that loads others: see loader.mjs.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "loader", worker = .loader)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "loader")],
);

const loader :Workerd.Worker = (
  modules = [(name = "loader.mjs", esModule = embed "loader.mjs")],
  bindings = [(name = "LOADER", workerLoader = ())],
  compatibilityDate = "2026-11-01",
);
