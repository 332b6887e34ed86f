// LanceDB IVF_PQ, re-scored by the decoder.
//
//     npm install @lancedb/lancedb apache-arrow
//     pip install torch numpy zstandard
//
// The query is Flashlight's seed; the N best that LanceDB returns are scored by the
// decoder. LanceDB has no decoder and JavaScript no fast matrix product, so the work is in
// three steps, and a query's time is the sum of the last two:
//
//   1. lancedb_stage.py dump    writes rows and queries to a temporary folder, 1 GB at most
//   2. this program             builds the index, searches, writes the ids found
//   3. lancedb_stage.py score   scores them as the other peers do, prints and appends
//
// With --threads 1 the process is pinned to one core once the index is built (taskset,
// Linux); Lance has no option for it. $PYTHON is the interpreter (default python3). Modules
// are looked for beside this file and in $NODE_PATH.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

process.env.LANCEDB_LOG ??= "error";
const require = createRequire(import.meta.url);
const lancedb = require("@lancedb/lancedb");
const arrow = require("apache-arrow");

// Indexes: the space, and the bits and dimensions of a sub-quantizer (codes are d/4 bytes
// in both). In space dot, LanceDB also trains lists and codebooks by inner product, which
// puts most rows into few lists, and makes nothing of 4 bits. Space l2 is the usual
// reduction (lancedb_stage.py), after which inner products are distances.
const INDEXES = [
  { space: "dot", bits: 8, subDim: 4, shares: [0.1, 0.3, 1] },
  { space: "l2", bits: 4, subDim: 2, shares: [0.05, 0.1, 0.3, 1] },
]; // shares: of the lists, probed
const LISTS = { debian: 252, "go-stdlib": 183, genes: 868 }; // LanceDB's default, sqrt n
const FOUND = [1000, 2000, 4000]; // all re-scored
const REFINED = { count: 1000, refine: 3 }; // three times as many ranked exactly first
const WARM_UP = 5;

const { values: args } = parseArgs({
  options: {
    data: { type: "string" },
    graph: { type: "string" },
    out: { type: "string" },
    sources: { type: "string" },
    threads: { type: "string", default: "1" },
  },
});

function stage(verb, folder, space) {
  const script = fileURLToPath(new URL("lancedb_stage.py", import.meta.url));
  const more = args.sources ? ["--sources", args.sources] : [];
  const all = [script, verb, "--folder", folder, "--space", space, "--data", args.data, "--graph", args.graph];
  execFileSync(process.env.PYTHON ?? "python3", [...all, "--out", args.out, "--threads", args.threads, ...more], {
    stdio: "inherit",
  });
}

function readFloats(file) {
  const bytes = fs.readFileSync(file);
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
}

function arrowTable(rows, dim) {
  const count = rows.length / dim;
  const type = new arrow.FixedSizeList(dim, new arrow.Field("item", new arrow.Float32(), true));
  const child = arrow.makeData({ type: new arrow.Float32(), length: rows.length, data: rows });
  return new arrow.Table({
    id: arrow.makeVector(Int32Array.from({ length: count }, (_, i) => i)),
    vector: arrow.makeVector(arrow.makeData({ type, length: count, nullCount: 0, child })),
  });
}

async function build(db, index, rows, dim) {
  const start = performance.now();
  const table = await db.createTable(index.space, arrowTable(rows, dim));
  const config = lancedb.Index.ivfPq({
    distanceType: index.space,
    numPartitions: LISTS[args.graph],
    numSubVectors: dim / index.subDim,
    numBits: index.bits,
    maxIterations: 15, // of 50, and a sample of 64 rows a list, of 256: a quarter of the
    sampleRate: 64, // time, and no recall lost
  });
  await table.createIndex("vector", { config });
  return { table, seconds: (performance.now() - start) / 1e3 };
}

async function search(table, index, query, probes, count, refine) {
  let q = table.query().nearestTo(query).distanceType(index.space).nprobes(probes).limit(count).fastSearch();
  if (refine) q = q.refineFactor(refine);
  const found = await q.select(["id", "_distance"]).toArrow();
  return found.getChild("id").toArray();
}

async function measure(table, index, queries, plan) {
  const run = (query) => search(table, index, query, plan.probes, plan.count, plan.refine);
  for (const query of queries.slice(0, WARM_UP)) await run(query);
  const ms = [];
  const ids = [];
  for (const query of queries) {
    const start = performance.now();
    const found = await run(query);
    ms.push(performance.now() - start);
    ids.push(Array.from(found));
  }
  return { ms, ids };
}

function plans(shares) {
  const all = shares.flatMap((share) => {
    const probes = Math.max(1, Math.round(LISTS[args.graph] * share));
    return FOUND.map((count) => ({ probes, count, refine: 0 }));
  });
  return [...all, { probes: LISTS[args.graph], ...REFINED }];
}

function affinity(...cores) {
  return execFileSync("taskset", ["-a", "-p", ...cores, String(process.pid)], { encoding: "utf8" });
}

// Pins all threads of this process to core 0, and returns how to undo it.
function pin() {
  const mask = affinity().trim().split("\n")[0].split(": ")[1];
  affinity("-c", "0");
  return () => affinity(mask);
}

async function measureIndex(db, index, folder) {
  stage("dump", folder, index.space);
  const { dim } = JSON.parse(fs.readFileSync(path.join(folder, "shape.json"), "utf8"));
  const version = lanceVersion();
  const flat = readFloats(path.join(folder, "queries.f32"));
  const queries = Array.from({ length: flat.length / dim }, (_, i) => flat.slice(i * dim, (i + 1) * dim));
  const { table, seconds } = await build(db, index, readFloats(path.join(folder, "rows.f32")), dim);
  console.log(`${args.graph}: ${index.space} index built in ${seconds.toFixed(1)} s`);
  const unpin = args.threads === "1" ? pin() : () => {};
  const hits = fs.openSync(path.join(folder, "hits.jsonl"), "a");
  for (const plan of plans(index.shares)) {
    const refined = plan.refine ? `${plan.refine * plan.count} refined, ` : "";
    const code = `IVF${LISTS[args.graph]} PQ${dim / index.subDim}x${index.bits}`;
    const setting = `${index.space} ${code}, ${plan.probes} probes, ${refined}${plan.count} re-scored`;
    const found = await measure(table, index, queries, plan);
    fs.writeSync(hits, JSON.stringify({ setting, version, build_s: seconds, ...found }) + "\n");
  }
  fs.closeSync(hits);
  unpin();
}

function lanceVersion() {
  const main = require.resolve("@lancedb/lancedb");
  const file = path.join(main.slice(0, main.lastIndexOf(path.join("lancedb", "dist"))), "lancedb", "package.json");
  return JSON.parse(fs.readFileSync(file, "utf8")).version;
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "lancedb-peer-"));
try {
  const db = await lancedb.connect(path.join(folder, "db"));
  for (const index of INDEXES) await measureIndex(db, index, folder);
  stage("score", folder, "dot");
} finally {
  fs.rmSync(folder, { recursive: true, force: true });
}
