/* One datagram at a time between hosts, with no protocol: the sender, and a receiver that blocks. See floor.py. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 8) return 2; /* send or receive, group, port, own address, size, count, pause in ns */
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[3]))};
    struct in_addr own;
    int size = atoi(argv[5]), count = atoi(argv[6]), udp = socket(AF_INET, SOCK_DGRAM, 0);
    int64_t pause = atoll(argv[7]), stamp;
    char data[65536] = {0};
    inet_aton(argv[2], &there.sin_addr);
    inet_aton(argv[4], &own);
    if (!strcmp(argv[1], "send")) {
        setsockopt(udp, IPPROTO_IP, IP_MULTICAST_IF, &own, sizeof own);
        connect(udp, (struct sockaddr *)&there, sizeof there);
        struct timespec rest = {pause / 1000000000, pause % 1000000000};
        for (int i = 0; i < count; i++) {
            nanosleep(&rest, NULL);
            stamp = now_ns();
            memcpy(data, &stamp, sizeof stamp);
            if (send(udp, data, size, 0) < 0) return 1;
        }
        return 0;
    }
    struct ip_mreq member = {.imr_multiaddr = there.sin_addr, .imr_interface = own};
    if (bind(udp, (struct sockaddr *)&there, sizeof there)) return 1;
    if (setsockopt(udp, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof member)) return 1;
    puts("ready");
    fflush(stdout);
    for (int i = 0; i < count; i++) {
        if (recv(udp, data, sizeof data, 0) < (ssize_t)sizeof stamp) return 1;
        memcpy(&stamp, data, sizeof stamp);
        printf("%lld\n", (long long)(now_ns() - stamp));
    }
    return 0;
}
