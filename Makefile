# Everything that this file makes lies in bin/, .airlock/ and node_modules/.
# A target does what is missing and nothing else.

export AIRLOCK_HOME := $(CURDIR)/.airlock
export CGO_ENABLED := 0

GVISOR_VERSION = $(shell go list -C build/gvisor -m -f '{{.Version}}' gvisor.dev/gvisor)
NPM_DIRECTORIES := test/servers test/conformance codegen/testdata/typecheck
NPM_INSTALLED := $(NPM_DIRECTORIES:%=%/node_modules/.package-lock.json)
PYTHON_CLIENT := bin/python-client/mcp/__init__.py
BENCH_INSTALLED := test/bench/node_modules/.package-lock.json

.PHONY: help
help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

.PHONY: build
build: bin/airlock bin/runsc ## build bin/airlock and bin/runsc
	$(if $(filter build demo,$(MAKECMDGOALS)),@echo "Claude Code uses this build after:  $$(bin/airlock mcp --how)")

.PHONY: setup
setup: prerequisites build containerd images $(NPM_INSTALLED) $(PYTHON_CLIENT) ## do all set-up that is missing

.PHONY: demo
demo: prerequisites build images test/servers/node_modules/.package-lock.json ## show model-written code that uses MCP servers from a sandbox
	@./examples/demo/run

.PHONY: test
test: setup sdk redis ## run all tests, those with real sandboxes included
	AIRLOCK_TEST_SANDBOX=1 go test -count=1 -timeout=15m ./...

.PHONY: sdk
sdk: bin/python-sdk/.installed ## run the tests of the Python SDK and its engines
	@cd sdk/python && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=src:$(CURDIR)/bin/python-sdk python3 -m pytest

.PHONY: lint
lint: bin/staticcheck bin/python-lint/bin/ruff build/lint/node_modules/.package-lock.json ## check format and code of Go, Python and JavaScript
	@unformatted=$$(git ls-files -z '*.go' | xargs -0 gofmt -l); \
		if [ -n "$$unformatted" ]; then echo "run gofmt -w on:" $$unformatted >&2; exit 1; fi
	go vet ./...
	bin/staticcheck ./...
	bin/python-lint/bin/ruff check --no-cache --quiet --config build/lint/ruff.toml .
	@git ls-files -z '*.js' '*.mjs' '*.cjs' '*.ts' ':!:*testdata*' ':!:test/escape/attacks' | \
		xargs -0 build/lint/node_modules/@biomejs/cli-linux-*/biome lint --config-path=build/lint --error-on-warnings

.PHONY: vulnerabilities
vulnerabilities: bin/govulncheck ## look for known vulnerabilities in what is called
	@build/vulnerabilities

# Packages whose tests start no sandbox, or skip those that do, without those that
# only run other programs or only compute.
RACE_PACKAGES ?= $(shell go list ./app/... ./broker/... ./catalog/... ./internal/... ./policies/... ./runner/... | grep -vE '/(app/contract|broker/redact)$$')

# Tests of one goroutine that compute for long: the detector has nothing to find there.
RACE_SKIP := ^TestEverySingleBitIsFound$$

.PHONY: race
race: compiler ## run the tests that need no sandbox under Go's race detector
	@CGO_ENABLED=1 go test -race -count=1 -timeout=15m -skip '$(RACE_SKIP)' $(RACE_PACKAGES)

FUZZTIME ?= 3s

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME
	@build/fuzz $(FUZZTIME)

.PHONY: bench
bench: setup $(BENCH_INSTALLED) ## measure, beside what others need on this machine
	go run ./test/bench
	$(MAKE) --no-print-directory measure-tokens

.PHONY: measure-redaction
measure-redaction: test/servers/node_modules/.package-lock.json test/conformance/node_modules/.package-lock.json ## measure what redaction finds of other scanners' examples
	go run -C test/redaction -mod=mod .

SEARCH_SETS ?= $(abspath ..)/shared/corpus/retrieval

.PHONY: measure-search
measure-search: build ## measure what searches find on the retrieval sets
	@for set in bfcl/queries metatool/queries metatool/queries_multi; do \
		echo "$$set:"; bin/airlock measure search --tools $(SEARCH_SETS)/$${set%/*}/tools.jsonl --queries $(SEARCH_SETS)/$$set.jsonl || exit; \
	done
	go test -count=1 -v -run 'TestSearchInEverydayWords' ./catalog | grep -v '^='
	go test -run xxx -bench 'Search' ./catalog

TOOL_LISTS ?= $(abspath ..)/shared/corpus/tools

.PHONY: measure-tokens
measure-tokens: build ## measure what tools cost a model, with Airlock and without
	@bin/airlock measure tokens --tools $(TOOL_LISTS)
	@bin/airlock measure tokens --grid --tools $(TOOL_LISTS)

.PHONY: recording
recording: build images test/servers/node_modules/.package-lock.json build/recording/node_modules/.package-lock.json ## record the terminal session that the README shows
	@build/recording/record docs/pictures/session.svg

.PHONY: clean
clean: ## remove everything that this file makes
	rm -rf bin .airlock $(NPM_DIRECTORIES:%=%/node_modules) test/bench/node_modules build/lint/node_modules build/recording/node_modules

.PHONY: prerequisites compiler pip redis
prerequisites:
	@build/prerequisites

compiler pip redis:
	@build/prerequisites $@

# Go knows better than make whether something changed, and is quick about it.
.PHONY: bin/airlock
bin/airlock:
	@build/step 'building bin/airlock' go build -trimpath -o $@ ./cmd/airlock

bin/runsc: build/gvisor/go.mod build/gvisor/go.sum $(wildcard build/gvisor/runsc/*.go)
	@build/step 'building bin/runsc (gVisor; some minutes the first time)' \
		go build -C build/gvisor -trimpath -ldflags '-s -w -X gvisor.dev/gvisor/runsc/version.version=$(GVISOR_VERSION)' \
		-o $(CURDIR)/$@ ./runsc
	@touch $@

bin/staticcheck bin/govulncheck: build/lint/go.mod build/lint/go.sum
	@build/step 'building $@' go build -C build/lint -o $(CURDIR)/$@ \
		$(if $(filter %/staticcheck,$@),honnef.co/go/tools/cmd/staticcheck,golang.org/x/vuln/cmd/govulncheck)
	@touch $@

$(PYTHON_CLIENT): test/conformance/clients/requirements.txt | pip
	@build/step 'installing the Python client' python3 -m pip install --quiet --disable-pip-version-check --no-deps \
		--only-binary :all: --require-hashes --upgrade --target bin/python-client -r $<
	@touch $@

bin/python-lint/bin/ruff: build/lint/requirements.txt | pip
	@build/step 'installing ruff' python3 -m pip install --quiet --disable-pip-version-check --no-deps \
		--only-binary :all: --require-hashes --upgrade --target bin/python-lint -r $<
	@touch $@

bin/python-sdk/.installed: sdk/python/requirements/tests.txt | pip
	@rm -rf $(@D)
	@build/step 'installing the packages of the Python SDK' python3 -m pip install --quiet --disable-pip-version-check --no-deps \
		--only-binary :all: --require-hashes --target $(@D) -r $<
	@touch $@

.PHONY: images
images: bin/airlock prerequisites
	@bin/airlock images build >/dev/null

%/node_modules/.package-lock.json: %/package-lock.json | prerequisites
	@build/step 'installing the npm packages of $*' npm --prefix $* ci --ignore-scripts --no-audit --no-fund
	@touch $@

# Only the driver on containerd needs these, and its tests.
.PHONY: containerd
containerd: bin/containerd bin/containerd-shim-runsc-v1 ## build containerd and gVisor's shim for it

bin/containerd: build/containerd/go.mod build/containerd/go.sum
	@build/step 'building bin/containerd' \
		go build -C build/containerd -trimpath -ldflags '-s -w' -o $(CURDIR)/$@ github.com/containerd/containerd/v2/cmd/containerd
	@touch $@

bin/containerd-shim-runsc-v1: build/gvisor/go.mod build/gvisor/go.sum
	@build/step 'building bin/containerd-shim-runsc-v1' \
		go build -C build/gvisor -trimpath -ldflags '-s -w' -o $(CURDIR)/$@ gvisor.dev/gvisor/shim
	@touch $@
