// SPDX-License-Identifier: GPL-2.0
/*
 * MPI_Bcast of so many bytes, so many times: when each process begins and has them, in
 * ns of CLOCK_MONOTONIC.
 *
 *	mpi_bcast BYTES TIMES
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static unsigned long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

int main(int argc, char **argv)
{
	int rank, bytes, times, i;
	unsigned long long begin;
	char *buf;

	MPI_Init(&argc, &argv);
	if (argc != 3)
		return 2;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	bytes = atoi(argv[1]);
	times = atoi(argv[2]);
	buf = malloc(bytes);
	if (!buf)
		return 1;
	memset(buf, rank, bytes);
	/* Connections are made when they are first used. */
	MPI_Bcast(buf, bytes < 1 << 20 ? bytes : 1 << 20, MPI_BYTE, 0, MPI_COMM_WORLD);
	for (i = 0; i < times; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		begin = now();
		MPI_Bcast(buf, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
		printf("bcast %d %d %llu %llu\n", i, rank, begin, now());
		fflush(stdout);
		if (buf[bytes - 1] != 0)
			return 3;
		memset(buf, rank, bytes);
	}
	MPI_Finalize();
	return 0;
}
