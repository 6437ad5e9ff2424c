# mdevirt: build, test, install, pack. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.NOTPARALLEL:

DESTDIR ?=
PREFIX ?= /usr
SYSCONFDIR ?= /etc
# Programs to install: `release`, or `dev` for a quick look.
PROFILE ?= release

export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/sbin:/sbin
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
BUILT = $(TARGET)/$(patsubst dev,debug,$(PROFILE))
VERSION := $(shell sed -n '/^version = /{s/^version = "\(.*\)"/\1/p;q}' Cargo.toml)

BINDIR = $(PREFIX)/bin
SBINDIR = $(PREFIX)/sbin
SHAREDIR = $(PREFIX)/share
UNITDIR = $(PREFIX)/lib/systemd/system
# These services look into fixed directories: below /usr, or /etc for what does not come from the distribution.
DBUSPOLICYDIR = $(if $(filter /usr,$(PREFIX)),/usr/share,$(SYSCONFDIR))/dbus-1/system.d
POLKITRULESDIR = $(if $(filter /usr,$(PREFIX)),/usr/share,$(SYSCONFDIR))/polkit-1/rules.d
POLKITACTIONDIR = /usr/share/polkit-1/actions
SYSUSERSDIR = $(if $(filter /usr,$(PREFIX)),/usr/lib,$(SYSCONFDIR))/sysusers.d
HOOKDIR = $(SYSCONFDIR)/libvirt/hooks/qemu.d

INSTALL_FILE = install -D -m 0644
INSTALL_PROGRAM = install -D -m 0755
# Names the programs where this installation has them.
LOCATED = sed -e 's|/usr/sbin/|$(SBINDIR)/|g' -e 's|/usr/bin/|$(BINDIR)/|g'

say = @echo "==> $(1)"

.PHONY: help
help: ## this list
	@echo "mdevirt $(VERSION)"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
	@echo "  DESTDIR= PREFIX=/usr SYSCONFDIR=/etc PROFILE=release|dev for install and uninstall"

# ---- what is needed

.PHONY: deps deps-build deps-demo deps-check deps-deb deps-vm
deps: ## install what any target needs and this machine lacks
	@packaging/deps.sh build demo check deb vm
deps-build deps-demo deps-check deps-deb deps-vm:
	@packaging/deps.sh $(@:deps-%=%)

# ---- build and show

.PHONY: build
build: deps-build ## the programs, optimised (PROFILE=dev: not)
	$(call say,building the programs ($(PROFILE)))
	@cargo build --locked --bins --profile $(PROFILE)

.PHONY: demo
demo: deps-build deps-demo ## the main job on a simulated host with two GPUs; ends by itself
	$(call say,building the programs (dev))
	@cargo build --locked --bins
	@tests/demo/run.sh $(TARGET)/debug

# ---- test

.PHONY: check
check: deps-build deps-check check-format check-scripts check-lint check-docs check-package check-tests ## everything quick

.PHONY: test
test: check check-long histories vm ## everything

.PHONY: check-format
check-format:
	$(call say,format)
	@cargo fmt --check

.PHONY: check-scripts
check-scripts:
	$(call say,shell scripts)
	@grep -rlE --exclude-dir=target --exclude-dir=.git '^#!/bin/(ba)?sh' . | xargs shellcheck --severity=warning

.PHONY: check-lint
check-lint:
	$(call say,lints with and without libvirt)
	@cargo clippy --locked --all-targets -- -D warnings
	@cargo clippy --locked --all-targets --no-default-features -- -D warnings

.PHONY: check-docs
check-docs:
	$(call say,documentation)
	@# Rooms are documented for those who work in them, so links to what is private are meant.
	@RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --locked --no-deps --document-private-items
	@cargo test --locked --doc

.PHONY: check-package
check-package:
	$(call say,installed tree)
	@# With the tests, which have further features of the same packages: one build for both.
	@cargo build --locked --bins --tests
	@rm -rf $(TARGET)/check-package
	@$(MAKE) install PROFILE=dev DESTDIR=$(TARGET)/check-package >/dev/null
	@packaging/check.sh $(TARGET)/check-package

.PHONY: check-tests
check-tests:
	$(call say,tests)
	@if cargo nextest --version >/dev/null 2>&1; then cargo nextest run --locked -E 'not ($(LONG))'; \
		else cargo test --locked --all-targets; fi

# What repeats every step of every operation against every failure of every call, and against two crashes in a row.
LONG = binary(saga_matrix) & test(/::(twice|failed_calls.*)$$/)

.PHONY: check-long
check-long: deps-build deps-check ## the long rows of the tests of operations
	$(call say,tests that take long)
	@if cargo nextest --version >/dev/null 2>&1; then cargo nextest run --locked -E '$(LONG)'; fi

.PHONY: histories
histories: deps-build deps-check ## ten thousand random histories of two simulated hosts
	$(call say,histories)
	@MDEVIRT_HISTORIES=10000 cargo nextest run --locked -E 'binary(histories)'

.PHONY: vm
vm: deps-vm deb ## the tests in a virtual machine: real kernel, real libvirt, the package installed
	$(call say,tests in the virtual machine)
	@tests/vm/run

.PHONY: bench
bench: deps-build deps-demo ## the benchmarks, as one table
	$(call say,benchmarks)
	@benches/table.sh

# ---- install

# Built when missing, not when old: `make build`, then `sudo make install`, works where root has no toolchain.
$(TARGET)/%/mdevirtd $(TARGET)/%/mdevirtctl:
	@$(MAKE) build

.PHONY: install
install: $(BUILT)/mdevirtd $(BUILT)/mdevirtctl ## what `make build` made, with all that goes with it
	$(call say,installing below $(DESTDIR)$(PREFIX) and $(DESTDIR)$(SYSCONFDIR))
	@$(INSTALL_PROGRAM) $(BUILT)/mdevirtd $(DESTDIR)$(SBINDIR)/mdevirtd
	@$(INSTALL_PROGRAM) $(BUILT)/mdevirtctl $(DESTDIR)$(BINDIR)/mdevirtctl
	@$(LOCATED) packaging/systemd/mdevirtd.service | $(INSTALL_FILE) /dev/stdin $(DESTDIR)$(UNITDIR)/mdevirtd.service
	@$(INSTALL_FILE) packaging/dbus/org.mdevirt1.conf $(DESTDIR)$(DBUSPOLICYDIR)/org.mdevirt1.conf
	@$(INSTALL_FILE) packaging/dbus/org.mdevirt1.service $(DESTDIR)$(SHAREDIR)/dbus-1/system-services/org.mdevirt1.service
	@$(INSTALL_FILE) packaging/polkit/org.mdevirt1.policy $(DESTDIR)$(POLKITACTIONDIR)/org.mdevirt1.policy
	@$(INSTALL_FILE) packaging/polkit/50-mdevirt.rules $(DESTDIR)$(POLKITRULESDIR)/50-mdevirt.rules
	@$(INSTALL_FILE) packaging/sysusers/mdevirt.conf $(DESTDIR)$(SYSUSERSDIR)/mdevirt.conf
	@$(LOCATED) integration/libvirt-hook/50-mdevirt | $(INSTALL_PROGRAM) /dev/stdin $(DESTDIR)$(HOOKDIR)/50-mdevirt
	@install -d $(DESTDIR)$(SHAREDIR)/mdevirt/xml-templates
	@install -m 0644 xml-templates/*.xml $(DESTDIR)$(SHAREDIR)/mdevirt/xml-templates/
	@for file in mdevirt.toml traits.toml; do [ -e $(DESTDIR)$(SYSCONFDIR)/mdevirt/$$file ] || \
		$(INSTALL_FILE) packaging/$$file $(DESTDIR)$(SYSCONFDIR)/mdevirt/$$file; done
	@$(MAKE) install-docs

.PHONY: install-docs
install-docs: PAGES = $(BUILT)/man
install-docs:
	@rm -rf $(PAGES) && mkdir -p $(PAGES)
	@$(BUILT)/mdevirtctl man $(PAGES)
	@cp packaging/man/* $(PAGES)
	@cd $(PAGES) && for page in *.[1-8]; do \
		gzip -9n $$page && $(INSTALL_FILE) $$page.gz $(DESTDIR)$(SHAREDIR)/man/man$${page##*.}/$$page.gz; done
	@for shell in bash-completion/completions/mdevirtctl zsh/vendor-completions/_mdevirtctl fish/vendor_completions.d/mdevirtctl.fish; do \
		name=$${shell%%[-/]*}; \
		$(BUILT)/mdevirtctl completions $$name | $(INSTALL_FILE) /dev/stdin $(DESTDIR)$(SHAREDIR)/$$shell; done
	@for file in README.md CHANGELOG.md LICENSE; do \
		$(INSTALL_FILE) $$file $(DESTDIR)$(SHAREDIR)/doc/mdevirt/$$file; done

.PHONY: uninstall
uninstall: ## takes away what install put there; configuration and state stay
	$(call say,removing from $(DESTDIR)$(PREFIX) and $(DESTDIR)$(SYSCONFDIR))
	@rm -f $(addprefix $(DESTDIR), \
		$(SBINDIR)/mdevirtd $(BINDIR)/mdevirtctl $(UNITDIR)/mdevirtd.service $(DBUSPOLICYDIR)/org.mdevirt1.conf \
		$(SHAREDIR)/dbus-1/system-services/org.mdevirt1.service $(POLKITACTIONDIR)/org.mdevirt1.policy \
		$(POLKITRULESDIR)/50-mdevirt.rules $(SYSUSERSDIR)/mdevirt.conf $(HOOKDIR)/50-mdevirt \
		$(SHAREDIR)/man/man1/mdevirtctl*.gz $(SHAREDIR)/man/man5/traits.toml.5.gz $(SHAREDIR)/man/man8/mdevirtd.8.gz \
		$(SHAREDIR)/bash-completion/completions/mdevirtctl \
		$(SHAREDIR)/zsh/vendor-completions/_mdevirtctl $(SHAREDIR)/fish/vendor_completions.d/mdevirtctl.fish)
	@rm -rf $(addprefix $(DESTDIR)$(SHAREDIR)/,mdevirt doc/mdevirt)

.PHONY: deb
deb: deps-deb ## the Debian package, target/deb/mdevirt_VERSION_ARCH.deb
	@$(MAKE) build PROFILE=release
	$(call say,packing)
	@rm -rf $(TARGET)/deb/root
	@$(MAKE) install DESTDIR=$(TARGET)/deb/root PREFIX=/usr SYSCONFDIR=/etc PROFILE=release >/dev/null
	@packaging/deb/build.sh $(TARGET)/deb/root $(VERSION) $(TARGET)/deb

.PHONY: clean
clean: ## removes everything built, VM images too
	@cargo clean
