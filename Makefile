# What people type. `make run` is enough to look around; everything it needs is installed first.
# Nothing is skipped silently: a step that cannot run says why and fails.

# Debian 12's; the lock file is made for 3.11.
PYTHON ?= $(shell command -v python3.11 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
# qemu-utils converts images of other formats.
APT_RUN := python3-venv tgt dnsmasq-base ipxe iproute2 qemu-utils
# busybox-static, cpio and kmod make the guest with the kernel's target (tests/lab/lab_guest_image.py).
APT_TEST := qemu-system-x86 qemu-block-extra ipxe-qemu seabios ovmf libiscsi-bin \
	xfsprogs btrfs-progs e2fsprogs gettext curl \
	mmdebstrap fdisk mtools grub-efi-amd64-bin grub-pc-bin nginx-light systemd \
	busybox-static cpio kmod
# Chromium and what it writes with, Chinese too: the pages are tried and pictured in it.
APT_BROWSER := chromium fonts-dejavu-core fonts-wqy-zenhei
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help run install packages test test-deps test-browser test-lab lint format bench check i18n screenshots

help: ## show this list
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: install ## everything on this machine: target daemon, agent, control plane (IFACE= RANGE= adds DHCP)
	@exec $(BIN)/python -m ipxeready.local

install: packages $(VENV)/.installed ## Debian packages (as root) and the locked Python packages

packages:
	@deploy/apt-install $(APT_RUN)

# The stamp holds as long as the lock file does.
$(VENV)/.installed: requirements.lock | packages
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

test-deps: install ## what the tests need besides
	@deploy/apt-install $(APT_TEST) $(APT_BROWSER)

test: test-deps lint ## all tests: first the fast ones side by side, then the pages in a browser, then the lab with real firmware
	@$(BIN)/python -m pytest -n $(JOBS) -m "not lab and not browser"
	@$(MAKE) --no-print-directory test-browser
	@$(MAKE) --no-print-directory test-lab

test-browser: test-deps ## the pages in Debian's Chromium, as users work with them
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m browser

test-lab: test-deps ## real firmware and daemons in network namespaces (needs root)
	@$(BIN)/python -m pytest -m lab

lint: install ## style, types, layers, deployment checks
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy .
	@$(BIN)/lint-imports --no-logo
	@$(MAKE) --no-print-directory check

check: install ## Django's own checks, as shipped and with TLS
	@$(BIN)/python manage.py check --deploy --fail-level WARNING
	@IPXE_TLS=1 $(BIN)/python manage.py check --deploy --fail-level WARNING

format: install ## bring the code into shape
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: test-deps ## figures of this machine at 100, 1,000 and 10,000 workers, of clones and targets, beside what they are compared with
	@$(BIN)/python -m tests.bench.run

i18n: install ## bring the Chinese texts in line with the sources, compile them (needs gettext)
	@deploy/apt-install gettext
	@$(BIN)/python manage.py translations

screenshots: test-deps ## the part of the tests that pictures every page, with the pictures in docs/screenshots and the README
	@PICTURES=docs/screenshots $(BIN)/python -m pytest -q tests/browser/test_every_page.py
	@$(BIN)/python -m tests.browser.readme_pages
