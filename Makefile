# Everything that this file makes lies in bin/, .airlock/ and node_modules/.
# A target does what is missing and nothing else.

export AIRLOCK_HOME := $(CURDIR)/.airlock
export CGO_ENABLED := 0
# Programs and tests share what is compiled. Without information for debuggers, compiling takes three quarters of the
# time and linking half of it. Releases are built without it as well (build/dist/programs).
SHARED_FLAGS := -trimpath -gcflags=all=-dwarf=false -ldflags=-w
export GOFLAGS := $(strip $(filter-out $(SHARED_FLAGS),$(GOFLAGS)) $(SHARED_FLAGS))

NPM_DIRECTORIES := test/servers test/conformance test/browser test/apps codegen/testdata/typecheck build/htmx
NPM_INSTALLED := $(NPM_DIRECTORIES:%=%/node_modules/.package-lock.json)
PYTHON_CLIENT := bin/python-client/mcp/__init__.py
COLLECTOR := bin/otelcol
CLEAN_ROOT := bin/clean-root.tar
DIST_ARCHITECTURES ?= amd64 arm64
BASES = $(DIST_ARCHITECTURES:%=bin/base-%.tar.gz)
BENCH_INSTALLED := test/bench/node_modules/.package-lock.json
EXAMPLES_INSTALLED := examples/agents/node_modules/.package-lock.json bin/python-agents/.installed

.PHONY: help
help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

.PHONY: build
build: bin/airlock bin/mcp-kernel-server bin/qwed-mcp bin/runsc
build: ## build bin/runsc and bin/airlock, also under the names mcp-kernel-server and qwed-mcp
	$(if $(filter build demo,$(MAKECMDGOALS)),@echo "Claude Code uses this build after:  $$(bin/airlock mcp --how)")

.PHONY: setup
setup: prerequisites build containerd images bin/oidc-provider bin/versitygw $(NPM_INSTALLED) $(PYTHON_CLIENT)
setup: ## do all set-up that is missing

# .ci/run does it beside the first things that are compiled.
.PHONY: fetch
fetch: prerequisites redis nginx postgresql mariadb chromium promtool $(NPM_INSTALLED) $(PYTHON_CLIENT)
fetch: bin/python-sdk/.installed bin/python-crewai/.installed $(EXAMPLES_INSTALLED) $(CLEAN_ROOT) $(BASES)
fetch: ## fetch what tests need from others

.PHONY: demo
demo: prerequisites build code-images test/servers/node_modules/.package-lock.json
demo: ## show model-written code that uses MCP servers from a sandbox
	@./examples/demo/run

# Half of the time, tests of sandboxes and clusters wait for other processes. The packages that take the longest begin
# first, so that none of them is left alone at the end.
LONG_PACKAGES := $(addprefix ./,cmd/airlock test/cluster test/escape test/console test/dist app/contract test/stores \
	test/signin codegen test/doors)
TEST_PACKAGES ?= $(shell expr $$(nproc) \* 3 / 2)

.PHONY: test
test: fetch setup
test: ## run all tests, those with real sandboxes included
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=line sdk $(COLLECTOR) dist # the first uses one processor
	go test -C build/dist -count=1 ./...
	go test -C test/kubernetes -count=1 ./...
	AIRLOCK_TEST_SANDBOX=1 go test -count=1 -p $(TEST_PACKAGES) -vet=off -timeout=45m $(LONG_PACKAGES) ./...

.PHONY: try
try: export AIRLOCK_TEST_SANDBOX := 1
try: ## run the tests of PACKAGE whose names match RUN, after make setup
	@go test -count=1 -vet=off -timeout=20m -run "$$RUN" "$$PACKAGE"

.PHONY: examples
examples: setup $(EXAMPLES_INSTALLED)
examples: ## run the examples of agents with their frameworks and a scripted model
	AIRLOCK_TEST_SANDBOX=1 go test -count=1 -v ./test/agents

.PHONY: browser
browser: chromium test/browser/node_modules/.package-lock.json test/apps/node_modules/.package-lock.json
browser: ## install what the tests of the console drive: Chromium and playwright-core

.PHONY: sdk
sdk: images bin/python-sdk/.installed bin/python-crewai/.installed ## run the tests of the Python SDK and its engines
	@PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=src:$(CURDIR)/bin/python-sdk build/sdk-tests

.PHONY: lint
lint: bin/staticcheck bin/python-lint/bin/ruff build/lint/node_modules/.package-lock.json
lint: ## check format and code of Go, Python and JavaScript, and the rules of test/house
	@unformatted=$$(git ls-files -z '*.go' | xargs -0 gofmt -l); \
		if [ -n "$$unformatted" ]; then echo "run gofmt -w on:" $$unformatted >&2; exit 1; fi
	go vet ./...
	bin/staticcheck ./...
	go test -count=1 -vet=off ./test/house
	bin/python-lint/bin/ruff check --no-cache --quiet --config build/lint/ruff.toml .
	@git ls-files -z '*.js' '*.mjs' '*.cjs' '*.ts' ':!:*testdata*' ':!:test/escape/attacks' \
		':!:app/console/assets/htmx.min.js' | \
		xargs -0 build/lint/node_modules/@biomejs/cli-linux-*/biome lint --config-path=build/lint --error-on-warnings

.PHONY: vulnerabilities
vulnerabilities: bin/govulncheck ## look for known vulnerabilities in what is called
	@build/vulnerabilities

# Packages that start goroutines or lock, and whose tests start no sandbox or skip those that do.
RACE_PACKAGES ?= $(shell git grep -lE '\bgo func|\.Go\b|sync\.|atomic\.' -- \
	admission app audit broker catalog internal kernel policies redact runner | \
	grep '\.go$$' | xargs dirname | sort -u | \
	grep -vE '^(app/contract|redact)$$|/testdata' | sed 's|^|./|')

# Tests of large inputs in one goroutine: the detector has nothing to find there, and makes them take minutes.
LARGE := EverySingleBitIsFound|AHundredThousandAgents|HostileRequests|ManyAgents|HugeAndHostileArguments
LARGE := $(LARGE)|SessionsThatAreLongOverAreForgotten
RACE_SKIP := (Is|Are)Linear$$|^Test($(LARGE))$$

.PHONY: race
race: compiler ## run the tests that need no sandbox under Go's race detector
	@CGO_ENABLED=1 go test -race -count=1 -vet=off -timeout=15m -skip '$(RACE_SKIP)' $(RACE_PACKAGES)

FUZZTIME ?= 3s

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME
	@build/fuzz $(FUZZTIME)

SQL_FUZZ ?= 1h
SQL_SEED ?= $(shell date +%s)

.PHONY: fuzz-sql
fuzz-sql: postgresql mariadb pip
fuzz-sql: ## execute generated SQL that is judged to be a read in SQLite, PostgreSQL and MariaDB for SQL_FUZZ
	AIRLOCK_SQL_FUZZ=$(SQL_FUZZ) AIRLOCK_SQL_SEED=$(SQL_SEED) go test -count=1 -v -timeout=0 ./test/sqlread

.PHONY: bench
bench: setup $(BENCH_INSTALLED) $(COLLECTOR) ## measure, beside what others need on this machine
	go run ./test/bench
	$(MAKE) --no-print-directory measure-tokens

SOAK ?= 1h

SERVERS ?= $(CURDIR)/.airlock/published

.PHONY: contained-servers
contained-servers: build code-images
contained-servers: ## try some 35 servers of npm and PyPI in sandboxes, and compare with docs/contained-servers.md
	@mkdir -p $(SERVERS)
	AIRLOCK_TEST_SANDBOX=1 AIRLOCK_TEST_SERVERS=$(SERVERS) go test -count=1 -v -timeout=2h \
		-run '^TestAllPublishedServers$$' ./test/contained

.PHONY: soak
soak: build code-images ## let a daemon work for SOAK, and fail when something grows or slows down
	go run ./test/soak -for $(SOAK)

.PHONY: measure-redaction
measure-redaction: test/servers/node_modules/.package-lock.json test/conformance/node_modules/.package-lock.json
measure-redaction: ## measure what redaction finds of other scanners' examples
	go run -C test/redaction -mod=mod .

SEARCH_SETS ?= $(abspath ..)/shared/corpus/retrieval

.PHONY: measure-search
measure-search: ## measure what searches find on the retrieval sets
	@for set in bfcl/queries metatool/queries metatool/queries_multi; do \
		echo "$$set:"; go run ./test/search -tools $(SEARCH_SETS)/$${set%/*}/tools.jsonl \
			-queries $(SEARCH_SETS)/$$set.jsonl || exit; \
	done
	go test -count=1 -v -run 'TestSearchInEverydayWords' ./test/search | grep -v '^='
	go test -run xxx -bench 'Search' ./catalog

TOOL_LISTS ?= $(abspath ..)/shared/corpus/tools

.PHONY: measure-tokens
measure-tokens: build ## measure what tools cost a model, with Airlock and without
	@bin/airlock measure tokens --tools $(TOOL_LISTS)
	@bin/airlock measure tokens --grid --tools $(TOOL_LISTS)

.PHONY: recording
recording: build code-images test/servers/node_modules/.package-lock.json \
	build/recording/node_modules/.package-lock.json
recording: ## record the terminal session that the README shows
	@build/recording/record docs/pictures/session.svg

.PHONY: screenshots
screenshots: build code-images browser pngquant ## take the picture of the console that the README shows
	@build/step 'taking pictures of the console' \
		env AIRLOCK_TEST_SANDBOX=1 AIRLOCK_SCREENSHOTS=$(CURDIR)/docs/pictures \
		go test -count=1 -run '^TestScreenshots$$' ./test/console
	@pngquant --force --strip --skip-if-larger --speed 1 --ext .png docs/pictures/console-*.png

.PHONY: dist
dist: bin/airlock $(BASES) ## build archives, Debian packages and a container image, with checksums and what is in them
	@rm -rf bin/dist
	@for architecture in $(DIST_ARCHITECTURES); do \
		build/step "building the programs for $$architecture" \
			build/dist/programs "$$architecture" "bin/programs/$$architecture" || exit; done
	@build/step 'packing' env SOURCE_DATE_EPOCH="$$(git log -1 --format=%ct)" \
		go run -C build/dist . -root $(CURDIR) -programs $(CURDIR)/bin/programs \
		-bases $(CURDIR)/bin -host $(CURDIR)/bin/airlock -out $(CURDIR)/bin/dist $(DIST_ARCHITECTURES)
	@cd bin/dist && sha256sum --check --quiet SHA256SUMS && ls -1 airlock_*

.PHONY: kubernetes
kubernetes: bin/kubernetes/kube-apiserver ## apply the manifests of deploy/kubernetes to a real API server
	AIRLOCK_KUBERNETES=$(CURDIR)/bin/kubernetes go test -C test/kubernetes -count=1 -v ./...

bin/kubernetes/kube-apiserver: build/kubernetes/programs build/kubernetes/apiserver/go.mod build/kubernetes/etcd/go.mod
	@build/step 'building the API server of Kubernetes' build/kubernetes/programs bin/kubernetes

.PHONY: clean
clean: ## remove everything that this file makes
	rm -rf bin .airlock $(NPM_DIRECTORIES:%=%/node_modules)
	rm -rf test/bench/node_modules build/lint/node_modules build/recording/node_modules examples/agents/node_modules

.PHONY: prerequisites compiler pip redis nginx postgresql mariadb chromium pngquant
prerequisites:
	@build/prerequisites

compiler pip redis nginx postgresql mariadb chromium pngquant:
	@build/prerequisites $@

# Only the program: Debian's package would start a Prometheus.
.PHONY: promtool
promtool: bin/promtool ## fetch Prometheus' promtool, which tests the alert rules
bin/promtool:
	@mkdir -p $(@D)/promtool.d
	@cd $(@D)/promtool.d && flock ../.prerequisites ../../build/step 'fetching promtool' \
		sh -c 'apt-get download prometheus || { apt-get update && apt-get download prometheus; }'
	@dpkg-deb --fsys-tarfile $(@D)/promtool.d/prometheus_*.deb | tar -xO ./usr/bin/promtool >$(@D)/promtool.d/promtool
	@chmod +x $(@D)/promtool.d/promtool && mv $(@D)/promtool.d/promtool $@ && rm -r $(@D)/promtool.d

# Go knows better than make whether something changed, and is quick about it.
.PHONY: bin/airlock
bin/airlock:
	@build/step 'building bin/airlock' go build -o $@ ./cmd/airlock

# The same program under the names by which hosts know the kernel's tools, and the risk
# gateway.
.PHONY: bin/mcp-kernel-server bin/qwed-mcp
bin/mcp-kernel-server bin/qwed-mcp:
	@build/step 'building $@' go build -o $@ ./cmd/$(@F)

bin/runsc: build/gvisor/build build/gvisor/go.mod build/gvisor/go.sum $(wildcard build/gvisor/patches/*.patch)
bin/runsc: $(wildcard build/gvisor/runsc/*.go build/gvisor/runsc/*/*.go)
	@build/step 'building bin/runsc (gVisor; some minutes the first time)' build/gvisor/build $@
	@touch $@

bin/oidc-provider: build/oidc/go.mod build/oidc/go.sum $(wildcard build/oidc/*.go)
	@build/step 'building bin/oidc-provider, for tests' go build -C build/oidc -o $(CURDIR)/$@ .
	@touch $@

bin/versitygw: build/s3/go.mod build/s3/go.sum
	@build/step 'building bin/versitygw, an S3 server for tests' \
		go build -C build/s3 -ldflags '-s -w' -o $(CURDIR)/$@ github.com/versity/versitygw/cmd/versitygw
	@touch $@

bin/staticcheck bin/govulncheck: build/lint/go.mod build/lint/go.sum
	@build/step 'building $@' go build -C build/lint -o $(CURDIR)/$@ \
		$(if $(filter %/staticcheck,$@),honnef.co/go/tools/cmd/staticcheck,golang.org/x/vuln/cmd/govulncheck)
	@touch $@

$(PYTHON_CLIENT): test/conformance/clients/requirements.txt | pip
	@build/step 'installing the Python client' python3 -m pip install --quiet --disable-pip-version-check --no-deps \
		--only-binary :all: --require-hashes --upgrade --target bin/python-client -r $<
	@touch $@

$(COLLECTOR): build/collector/go.mod build/collector/go.sum build/collector/main.go
	@build/step 'building $@ (an OpenTelemetry Collector for tests; some minutes the first time)' \
		go build -C build/collector -ldflags '-s -w' -o $(CURDIR)/$@ .
	@touch $@

# The Debian of the container image. Remove it for new packages.
bin/base-%.tar.gz: build/dist/base | prerequisites
	@build/step 'making the Debian of the container image for $*' build/dist/base $* $@

$(CLEAN_ROOT): packaging/debian/package.yaml build/dist/clean-root | prerequisites
	@build/step 'making a Debian for the test of the package' build/dist/clean-root $@

bin/python-lint/bin/ruff: build/lint/requirements.txt | pip
	@build/step 'installing ruff' python3 -m pip install --quiet --disable-pip-version-check --no-deps \
		--only-binary :all: --require-hashes --upgrade --target bin/python-lint -r $<
	@touch $@

bin/python-sdk/.installed: sdk/python/requirements/tests.txt | pip
	@rm -rf $(@D)
	@build/step 'installing the packages of the Python SDK' \
		python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
		--require-hashes --target $(@D) -r $<
	@touch $@

# CrewAI brings 140 packages with it (0.8 GB), some of other versions: they stay apart, and only its own test uses them.
bin/python-crewai/.installed: sdk/python/requirements/crewai.txt | pip
	@rm -rf $(@D)
	@build/step 'installing CrewAI' python3 -m pip install --quiet --disable-pip-version-check --no-deps \
		--no-compile --only-binary :all: --require-hashes --target $(@D) -r $<
	@touch $@

# 98 packages for five frameworks (0.6 GB), most of it the program of the Claude Agent SDK.
bin/python-agents/.installed: test/agents/requirements.txt | pip
	@rm -rf $(@D)
	@build/step 'installing the agent frameworks of the examples' \
		python3 -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --only-binary :all: \
		--require-hashes --target $(@D) -r $<
	@touch $@

# What runs code without packages; the demo needs no more.
.PHONY: code-images
code-images: bin/airlock prerequisites
	@bin/airlock images build python node >/dev/null

.PHONY: images
images: code-images pip ## build all images: of both languages, of the engines, of the example with packages
	@bin/airlock images build verify >/dev/null
	@bin/airlock images build --config examples/packages/airlock.yaml >/dev/null

%/node_modules/.package-lock.json: %/package-lock.json | prerequisites
	@build/step 'installing the npm packages of $*' npm --prefix $* ci --ignore-scripts --no-audit --no-fund
	@touch $@

# Only the driver on containerd needs these, and its tests.
.PHONY: containerd
containerd: bin/containerd bin/containerd-shim-runsc-v1 ## build containerd and gVisor's shim for it

bin/containerd: build/containerd/go.mod build/containerd/go.sum
	@build/step 'building bin/containerd' \
		go build -C build/containerd -ldflags '-s -w' -o $(CURDIR)/$@ \
		github.com/containerd/containerd/v2/cmd/containerd
	@touch $@

bin/containerd-shim-runsc-v1: build/gvisor/go.mod build/gvisor/go.sum
	@build/step 'building bin/containerd-shim-runsc-v1' \
		go build -C build/gvisor -ldflags '-s -w' -o $(CURDIR)/$@ gvisor.dev/gvisor/shim
	@touch $@
