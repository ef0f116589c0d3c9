# One line each; `make help` prints them.
GOLANGCI = go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# What is compiled with -trimpath can be used by the next clone, too.
export GOFLAGS := $(shell go env GOFLAGS 2>/dev/null) -trimpath
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

.DEFAULT_GOAL := help
.PHONY: help dev test chaos bench check code contract console clients vuln fmt lint build

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

dev: go ## run a complete installation here: servers, service, twelve demo cars (ARGS="--http 127.0.0.1:9000")
	@echo "Compiling Motorpool. The first time this downloads modules and takes one to three minutes; then seconds."
	@go build -o bin/dev ./cmd/dev
	@[ "$$(id -u)$$DATABASE_URL$(findstring --database-url,$(ARGS))" != 0 ] || .ci/servers postgres
	@echo "Starting the servers, the service and twelve simulated cars."
	@bin/dev $(ARGS)

test: go ## run all tests, most with the race detector, 10 to 30 minutes (installs servers where it can)
	@.ci/servers
	@.ci/node || true
	@.ci/npm -o console
	@.ci/npm -o clients/typescript build
	@.ci/test $(ARGS) ./lab/service ./lab/... ./simulator/... ./cmd/dev ./store/... ./...

chaos: go ## break everything and check every law, five minutes (SEED=7 COMMANDS=20000 DURATION=200s ARGS=--print; a day of bought units, 24 minutes: ARGS=--day; money: ARGS="--bookings 2000"; rentals: ARGS="--rentals 2000"; one fault: ARGS=--fault=postgres-async; before a release each that is in no other round, 15 minutes: ARGS=--fault=all; rolling restart: ARGS=--rollout; shards: ARGS=--shards; maintenance: ARGS=--maintenance)
	@.ci/servers
	@go build -o bin/ ./cmd/motorpool ./lab/chaos
	@bin/chaos $(if $(findstring --race,$(ARGS))$(findstring --binary,$(ARGS)),,--binary bin/motorpool) $(if $(SEED),--seed $(SEED)) $(if $(COMMANDS),--commands $(COMMANDS)) $(if $(DURATION),--duration $(DURATION)) $(ARGS)

bench: go ## measure everything next to floors of the same run, an hour (ROUNDS=1 SHORT=1: briefly, two minutes; one thing: ARGS="command --rounds 1", waiting, ingest, fleet; a million vehicles: ARGS=scale)
	@.ci/servers
	@go build -ldflags "-s -w" -o bin/motorpool ./cmd/motorpool && go build -o bin/bench ./lab/bench
	@bin/bench $(or $(ARGS),all) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SHORT),--short) $(if $(findstring --binary,$(ARGS)),,--binary bin/motorpool)

check: code contract console clients ## run what needs no server: format, vet, lint, architecture, language, contract, console, clients

code: go
	@files=$$(gofmt -l .); [ -z "$$files" ] || { echo "not formatted (make fmt):" $$files; exit 1; }
	$(GOLANGCI) run ./... ./lab/...
	go test -run 'Arrows|Methods|NotLinked|Language|Repository' .

contract: go ## check the HTTP contract with linters and client generators, and the Python signer with its vectors
	.ci/contract/run

console: ## build the web console, and check that console/dist is that (UPDATE=1: write it)
	@UPDATE=$(UPDATE) .ci/console

clients: ## build and test the client packages, with types of the contract as it is
	@.ci/npm clients/typescript build test

vuln: go ## look for known vulnerabilities in what the programs call (needs https://vuln.go.dev, or a copy: GOVULNDB=file:///srv/vulndb)
	@.ci/vuln

fmt: go ## format the code
	gofmt -w .

lint: go ## run the linters alone
	$(GOLANGCI) run ./... ./lab/...

build: go ## build the programs into bin/
	go build -ldflags "-s -w -X main.version=$(VERSION)" -o bin/ ./cmd/...

# Older ones cannot read go.mod, and name a line of it instead of what is missing.
.PHONY: go
go:
	@version=$$(cd / && GOTOOLCHAIN=local go env GOVERSION 2>/dev/null); case "$$version" in \
	"go1.2"[6-9]* | "go1."[3-9][0-9]* | "go1."[1-9][0-9][0-9]* | "go"[2-9]* | devel*) exit ;; \
	"go1.2"[1-5]*) (go version) >/dev/null && exit ;; \
	esac; echo "Go 1.26 or newer is needed$${version:+, and this is $$version}: https://go.dev/dl/ (README.md: without root, too)"; exit 1
