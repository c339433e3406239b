# SPDX-License-Identifier: GPL-2.0
# What people call; the kernel's build system reads Kbuild instead.
#
#	make			build spindle.ko against $(KDIR)
#	make help		the rest

TOP := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))

DESTDIR ?=
PREFIX ?= /usr
INSTALL ?= install
DEPMOD ?= depmod

INCLUDE_DIR := $(DESTDIR)$(PREFIX)/include/linux
MAN_DIR := $(DESTDIR)$(PREFIX)/share/man/man7

# A tree that modules can be built against has been configured: the running
# kernel's, else the newest.
find_kdir = \
	for dir in /lib/modules/$$(uname -r)/build; do \
		[ ! -e $$dir/include/config/auto.conf ] || { echo $$dir; exit; }; \
	done; \
	for dir in /lib/modules/*/build /usr/src/linux-headers-*; do \
		[ -e $$dir/include/config/auto.conf ] || continue; \
		version=$${dir\#/lib/modules/}; \
		version=$${version\#/usr/src/linux-headers-}; \
		echo $${version%/build} $$dir; \
	done | sort -V | tail -n 1 | cut -d ' ' -f 2

ifndef KDIR
KDIR := $(shell $(find_kdir))
endif

# It has the same defaults, and make hands on what was said on the command line.
userlib_make = $(MAKE) --no-print-directory -C $(TOP)/userlib
tools_make = $(MAKE) --no-print-directory -C $(TOP)/userlib/tools

# Kbuild's, with all that was said on the command line (W=1, C=2, V=1, CC=).
kbuild = $(MAKE) -C $(KDIR) M=$(TOP)

all: modules userlib

modules: need_kdir
	+@$(kbuild) modules

need_kdir:
	@[ -n "$(KDIR)" ] || { \
		echo "No kernel headers are installed: run scripts/setup, or say KDIR=." >&2; \
		exit 1; }
	@[ -e "$(KDIR)/include/config/auto.conf" ] || { \
		echo "KDIR=$(KDIR): no configured kernel tree" >&2; exit 1; }

# Not `make kernelrelease`: Debian's headers say the upstream version there.
release = $$(sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(KDIR)/include/generated/utsrelease.h)

# Headers of a distribution have no key to sign with.
unsigned = $(if $(wildcard $(KDIR)/certs/signing_key.*),,CONFIG_MODULE_SIG_ALL=)

userlib:
	+@$(userlib_make)

tools:
	+@$(tools_make)

install: modules install_headers install_man install_userlib
	+@$(kbuild) INSTALL_MOD_PATH=$(DESTDIR) INSTALL_MOD_DIR=updates $(unsigned) modules_install
	+@[ -n "$(DESTDIR)" ] || $(DEPMOD) "$(release)"

install_headers:
	$(INSTALL) -d $(INCLUDE_DIR)
	$(INSTALL) -m 644 $(TOP)/uapi/linux/spindle.h $(INCLUDE_DIR)/spindle.h

install_man:
	$(INSTALL) -d $(MAN_DIR)
	$(INSTALL) -m 644 $(TOP)/Documentation/spindle.7 $(MAN_DIR)/spindle.7

install_userlib: userlib install_headers
	+@$(userlib_make) install

install_tools: tools
	+@$(tools_make) install

uninstall_tools:
	+@$(tools_make) uninstall

uninstall_userlib:
	+@$(userlib_make) uninstall

uninstall: need_kdir uninstall_userlib uninstall_tools
	+@rm -fv $(DESTDIR)/lib/modules/"$(release)"/updates/spindle.ko*
	rm -f $(INCLUDE_DIR)/spindle.h $(MAN_DIR)/spindle.7
	+@[ -n "$(DESTDIR)" ] || $(DEPMOD) "$(release)"

# Not Kbuild's: that would go through build/ too, where guests are running.
clean:
	+@$(userlib_make) clean
	+@$(tools_make) clean
	@find $(TOP)/kmod -type f \( -name '*.o' -o -name '.*.cmd' -o -name '.*.d' \
		-o -name '*.[is]' -o -name '*.lst' -o -name '*.gcno' \) -delete
	@rm -rf $(TOP)/.tmp_versions
	@cd $(TOP) && rm -f spindle.ko spindle.mod spindle.mod.c ./*.o .*.o .*.cmd \
		modules.order modules.nsdeps Module.symvers

distclean: clean
	rm -rf $(TOP)/build

demo check:
	@$(TOP)/scripts/$@ $(ARGS)

bench:
	@$(TOP)/scripts/setup --bench
	@$(TOP)/scripts/bench all --write $(ARGS)

help:
	@echo 'make                 build spindle.ko against KDIR, and libspindle'
	@echo 'make userlib         libspindle alone: no kernel headers needed'
	@echo 'make install         module, library, headers, pkg-config file, manual pages'
	@echo 'make install_userlib the library with its headers and pages alone'
	@echo 'make tools           spindle-perf (wants libjson-c-dev)'
	@echo 'make install_tools   and its manual page'
	@echo 'make uninstall       remove them'
	@echo 'make clean           remove what was built here'
	@echo 'make distclean       and what was built for guests (build/)'
	@echo 'make demo            three machines, one group, one order; ARGS=--crash: one is killed'
	@echo 'make check           all tests; ARGS=--quick: fewer'
	@echo 'make bench           all benchmarks, into Documentation/benchmarks; hours'
	@echo
	@echo 'KDIR=$(or $(KDIR),(no kernel headers found: run scripts/setup))'
	@echo 'DESTDIR=, PREFIX=$(PREFIX), LIBDIR=, and what Kbuild knows: W=1 C=2 V=1 CC= LLVM=1'

.PHONY: all modules need_kdir userlib install install_headers install_man install_userlib \
	tools install_tools uninstall_tools uninstall uninstall_userlib clean distclean demo \
	check bench help
