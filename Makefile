# Two commands for a fresh Debian machine, which do all their own set-up: `make demo` and
# `make check`. The build itself is Meson's; the packages stand in tools/packages.txt.

BUILD = build

.PHONY: all demo check bench bench-storage install uninstall lint clean help

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	meson setup $(BUILD)

# A first result: a transaction load on SQLite, on the disk this directory stands on. Needs no
# server, and no root once the packages are there.
demo:
	tools/setup build
	tools/build $(BUILD) -- src/cmd/prony
	tools/demo $(BUILD)/src/cmd/prony

# Everything: builds, lint, unit and program tests, and both again with sanitizers.
check:
	tools/setup build check
	tools/check

# Speed against pgbench and sysbench: writes bench/RESULTS.md, within 15 minutes on an idle machine.
bench:
	tools/setup build check bench
	tools/build build-bench -Dbuildtype=release
	bench/run --build build-bench

# Volumes and virtual disks against what they say: writes bench/STORAGE.md; as root, 25 minutes.
bench-storage:
	tools/setup build check bench
	tools/build build-bench -Dbuildtype=release
	bench/run storage --build build-bench

install: all
	meson install -C $(BUILD) --no-rebuild

uninstall:
	ninja -C $(BUILD) uninstall

lint:
	tools/lint

clean:
	rm -rf $(BUILD) build-clang build-asan build-fuzz build-bench

help:
	@echo 'make           build into $(BUILD)/'
	@echo 'make demo      install missing packages, build, measure SQLite on this disk'
	@echo 'make check     install missing packages, build, lint, test everything'
	@echo 'make bench     install missing packages, build, compare with pgbench and sysbench'
	@echo 'make bench-storage   likewise, hold volumes and virtual disks against what they say'
	@echo 'make install   install (DESTDIR, and meson configure -Dprefix=... $(BUILD))'
	@echo 'make clean     remove all build directories'
