#!/bin/sh
# Reads a lease file of doyen and acts under the lease: docs/run.md, "The lease file".
#
#   sh reader.sh /run/doyen/orders-n1.lease
#
# Prints the term and the time left and exits with 0; prints "no lease" and exits with 1 if there is none or anything is in
# doubt. For a program that doyen does not run itself: it holds a shared lock while it acts, and a transfer waits for it.
# Needs `flock` (util-linux) and `od`.

no_lease() {
    echo 'no lease'
    exit 1
}

# 80 bytes, each as two hexadecimal digits.
record() {
    od -An -v -tx1 -w80 "$1" | tr -d '\n'
}

[ $# = 1 ] || { echo 'usage: reader.sh LEASE-FILE' >&2; exit 2; }
[ -r "$1" ] || no_lease
file=$1

# The lock first: whatever is read under it holds until it is released, or until the deadline.
exec 9< "$file"
flock --shared 9 || no_lease

# The whole record: the same twice. That its sequence is even is checked below.
tries=0
while first=$(record "$file"); [ "$first" != "$(record "$file")" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || no_lease
done
# shellcheck disable=SC2086
set -- $first
[ $# = 80 ] || no_lease

[ "$1$2$3$4$5$6$7$8" = 646f79656e4c5345 ] || no_lease # doyenLSE
[ "$9${10}${11}${12}" = 01000000 ] || no_lease        # version
[ $((0x${17} % 2)) = 0 ] || no_lease                  # sequence
deadline=$((0x${32}${31}${30}${29}${28}${27}${26}${25}))
term=$((0x${40}${39}${38}${37}${36}${35}${34}${33}))
boot=${49}${50}${51}${52}${53}${54}${55}${56}${57}${58}${59}${60}${61}${62}${63}${64}
namespace=$((0x${72}${71}${70}${69}${68}${67}${66}${65}))

# Deadlines count by the clock of one boot, in one time namespace.
[ "$boot" = "$(tr -d '\n-' < /proc/sys/kernel/random/boot_id)" ] || no_lease
[ "$namespace" = "$(stat -L -c %i /proc/self/ns/time 2> /dev/null || echo 0)" ] || no_lease

# The boot-time clock in hundredths of a second, rounded up.
read -r up _ < /proc/uptime
hundredths=$((${up%.*} * 100 + 1${up#*.} - 100 + 1))
left=$((deadline / 1000000 - hundredths * 10))
[ "$left" -gt 0 ] || no_lease

# Act here, and be done before the deadline.
echo "term $term, $left ms left"
