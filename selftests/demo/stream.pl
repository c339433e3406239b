#!/usr/bin/perl
# SPDX-License-Identifier: MIT
#
# One member of a group: what stream.c does, in a language that has never heard
# of it.
#
#	stream.pl ADDRESS CONTACT|- GROUP MEMBERS FILE OUT

use strict;
use warnings;
use Errno qw(ENOENT ECONNREFUSED);
use Socket;

use constant { SOL_SPINDLE => 0x5350, GROUP_CREATE => 1, GROUP_JOIN => 2, EVENTS => 10 };
use constant WANT_VIEW => 1 << 1;

sub number_in {
	open(my $f, '<', $_[0]) or die "$_[0]: $!\n";
	return <$f> + 0;
}

# The number of a view, and its members' addresses.
sub view_in {
	my ($view, $count, $size) = unpack('x8 Q x8 L x4 L', $_[0]);

	return ($view, map { inet_ntoa(substr($_[0], 76 + $_ * $size, 4)) } 0 .. $count - 1);
}

my ($address, $contact, $group, $members, $source, $target) = @ARGV;
open(my $in, '<', $source) or die "$source: $!\n";
open(my $out, '>', $target) or die "$target: $!\n";

socket(my $s, number_in('/sys/module/spindle/parameters/family'), SOCK_SEQPACKET, 0)
	or die "socket: $!\n";
bind($s, pack_sockaddr_in(0, inet_aton($address))) or die "bind: $!\n";
setsockopt($s, SOL_SPINDLE, EVENTS, WANT_VIEW) or die "events: $!\n";
if ($contact eq '-') {
	setsockopt($s, SOL_SPINDLE, GROUP_CREATE, pack('a64 L6 x32', $group, $members, (0) x 5))
		or die "create: $!\n";
} else {
	my $where = pack_sockaddr_in(0, inet_aton($contact));

	until (setsockopt($s, SOL_SPINDLE, GROUP_JOIN, pack('a64 a32 x56', $group, $where))) {
		die "join: $!\n" unless $! == ENOENT || $! == ECONNREFUSED;
		select(undef, undef, undef, 0.02);	# the creator is not there yet
	}
}

my $child = fork();
if (!$child) {
	while (my $line = <$in>) {
		chomp($line);
		defined(send($s, $line, 0)) or die "send: $!\n";
	}
	shutdown($s, SHUT_WR) or die "shutdown: $!\n";
	exit(0);
}

$| = 1;
my $received = 0;
while (1) {
	my $from = recv($s, my $line, 16384, 0);

	die "recv: $!\n" unless defined($from);
	if ($from eq '') {	# nobody sent it: it is an event, or the end of the stream
		last if $line eq '';
		my ($view, @members) = view_in($line);

		print $out "view $view @members\n";
		print "view $view at $received\n";
		next;
	}
	print $out inet_ntoa(substr($from, 20, 4)), ' ', $line, "\n";
	$received++;
	print "at $received\n" if $received % 1000 == 0;
}
close($out) or die "$target: $!\n";
waitpid($child, 0);
print "end received $received posts ",
	number_in("/sys/kernel/spindle/$address/$group/counters/posts"), "\n";
