package runsc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/internal/wire"
	"github.com/airlock-mcp/airlock/runner"
)

// TestRunsShareNoSequence runs the same code in sandboxes that were restored
// from one saved sandbox, with the images' own guests, and wants nothing random
// to repeat.
func TestRunsShareNoSequence(t *testing.T) {
	env := testenv.Sandbox(t)
	programs := map[string]string{
		"python": `
import os, random, secrets, uuid, tempfile
boot = open("/proc/sys/kernel/random/boot_id").read()
layout = next(line.split("-")[0] for line in open("/proc/self/maps") if "libc" in line)
result = [hash("text"), hash(b"text"), id(object()), layout, boot, os.urandom(8).hex(), random.random(), random.Random().random(), secrets.token_hex(8), str(uuid.uuid4()), tempfile.mktemp()]
`,
		"node": `
import { randomBytes, randomUUID, webcrypto } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync } from "node:fs";
import { createContext, runInContext, runInNewContext, Script } from "node:vm";
import { Worker } from "node:worker_threads";
if (existsSync("/proc/sys/kernel/random/boot_id")) throw new Error("there is a boot ID");
const post = 'require("node:worker_threads").parentPort.postMessage(Math.random())';
const form = new FormData();
const [ofWorker] = await once(new Worker(post, { eval: true }), "message");
globalThis.result = [randomBytes(8).toString("hex"), Math.random(), Math.random(), randomUUID(), [...webcrypto.getRandomValues(new Uint8Array(8))].join(),
  runInNewContext("Math.random()"), runInContext("Math.random()", createContext()), new Script("Math.random()").runInNewContext(), ofWorker,
  mkdtempSync("/tmp/x"), new Response(form).headers.get("content-type")];
`,
	}
	dir, err := os.MkdirTemp("/tmp", "airlock-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	r, err := runner.New(newDriver(t, env), &runner.Options{Logger: logger(t), StateDir: filepath.Join(dir, "s"),
		Pool: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.WithoutCancel(t.Context()))
	for language, code := range programs {
		t.Run(language, func(t *testing.T) {
			seen := map[string]int{}
			for run := range 8 {
				for i, value := range runCode(t, r, image(t, env.Home, language), code) {
					key := fmt.Sprint(i, " ", string(value))
					if before, ok := seen[key]; ok {
						t.Errorf("value %d: run %d got %s, as run %d did", i, run, value, before)
					}
					seen[key] = run
				}
			}
		})
	}
}

// runCode runs code whose result is a list, as the orchestrator would.
func runCode(t *testing.T, r *runner.Runner, image runner.Image, code string) []json.RawMessage {
	t.Helper()
	return runRequest(t, r, runner.Request{Image: image, Limits: runner.DefaultLimits()}, code)
}

func runRequest(t *testing.T, r *runner.Runner, req runner.Request, code string) []json.RawMessage {
	t.Helper()
	s, err := r.Acquire(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	type delivery struct {
		OK    bool              `json:"ok"`
		Data  []json.RawMessage `json:"data"`
		Error json.RawMessage   `json:"error"`
	}
	done := make(chan delivery, 1)
	go func() {
		_ = wire.Serve(ctx, s.Listener(), func(_ context.Context, call wire.Request) (any, error) {
			switch call.Method {
			case "run/start":
				return map[string]string{"language": req.Image.Name, "code": code}, nil
			case "run/finish":
				var d delivery
				err := json.Unmarshal(call.Params, &d)
				done <- d
				return map[string]string{}, err
			}
			return nil, wire.Violation("unexpected method %q", call.Method)
		})
	}()
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	select {
	case d := <-done:
		if !d.OK || len(d.Data) == 0 {
			t.Fatalf("the code failed: %s\nstderr: %s", d.Error, s.Stderr().Tail)
		}
		return d.Data
	case <-ctx.Done():
		t.Fatalf("the code did not deliver\nstderr: %s", s.Stderr().Tail)
	}
	return nil
}
