#!/usr/bin/env bash
# Runs ns-2 (Debian's ns2) on set-ups of which our knowledge is whole, and on those with one thing
# changed; writes lab/vectors/scenarios/reruns. Takes half an hour. NS names another ns.
set -euo pipefail
cd "$(dirname "$0")"
ns=${NS:-ns}
out=../../../vectors/scenarios/reruns
mkdir -p "$out"
rtts=$(mktemp)
trap 'rm -f "$rtts"' EXIT

file() { echo "$2" >"$out/$1.csv"; }

for name in ftp_only ftp_only_laws; do file $name q,n,qmax,tcp,seed,qmean_B,qstd_B,loss,util; done
for n in 30 100 300; do
    for seed in {10..29}; do
        [ "$n" != 30 ] && [ "$seed" -gt 19 ] && continue
        (cd ../../../.. && .venv/bin/python -c "
from sojourn_lab.validation.systems import propagation
print(*propagation($seed, $n))") >"$rtts"
        for q in DropTail RED; do
            $ns ftp_only.tcl q $q n "$n" seed "$seed" rtts "$rtts" >>"$out/ftp_only.csv"
        done
        [ "$n" = 30 ] && continue
        for q in ARED PI REM AVQ; do
            $ns ftp_only.tcl q $q n "$n" seed "$seed" rtts "$rtts" >>"$out/ftp_only_laws.csv"
        done
    done
done
for trunk in 0 1; do
    name=$([ $trunk = 1 ] && echo bulk_data_trunk || echo bulk_data)
    file $name q,n,buf,tcp,seed,qmean_p,loss,udp_loss,qstd_p,delay_ms_mean,delay_ms_std,goodput_Mbps,jain
    for n in 16 64 256; do
        for seed in {1..40}; do $ns bulk_data.tcl q TD n $n seed "$seed" trunk $trunk >>"$out/$name.csv"; done
    done
done
file fair topo,q,buf,seed,f1,f2,f3,f4,f5,jain
for topo in 3u 3v; do
    for seed in {1..40}; do $ns fair.tcl topo $topo seed "$seed" >>"$out/fair.csv"; done
done
file fair5 topo,q,buf,seed,f1,f2,f3,f4,f5,jain
for buf in 60000 120000; do
    for seed in {1..20}; do $ns fair.tcl topo 5 q DRR buf $buf seed "$seed" >>"$out/fair5.csv"; done
done
for hosts in 0 1; do
    name=$([ $hosts = 1 ] && echo two_way_hosts || echo two_way)
    file $name q,bw_Mbps,mtu,buf,seed,drops_per_s,loss,util,qmean_p,fwd_goodput_Mbps,jain_fwd
    for link in "2 500" "2 1000" "2 1500" "4 1000" "10 1000" "100 1000"; do
        read -r mbps mtu <<<"$link"
        for seed in {1..20}; do
            $ns two_way.tcl bw "$mbps" mtu "$mtu" seed "$seed" hosts $hosts >>"$out/$name.csv"
        done
    done
done

# As told; then with delays that differ, so that no two packets meet to the instant; then with new
# agents for every query instead of reset ones.
columns=q,skb,n,wq,seed,afct_ms,p50_ms,p99_ms,qct_ms,util,loss,bg_acked
switch() { # file, seeds, cases as "law wq skb n", further arguments
    local name=$1 seeds=$2 cases=$3
    shift 3
    file "$name" $columns
    while read -r q wq skb n; do
        for seed in $(seq "$seeds"); do
            $ns switch.tcl q "$q" wq "$wq" skb "$skb" n "$n" seed "$seed" "$@" >>"$out/$name.csv"
        done
    done <<<"$cases"
}
switch switch_told 10 "DropTail -1 10 40
DropTail -1 50 40
DropTail -1 100 40
RED -1 10 40
RED -1 50 40
RED -1 100 40
RED 0.002 10 40
RED 0.002 50 40
RED 0.002 100 40
DropTail -1 125 8
DropTail -1 31.25 32
DropTail -1 7.812 128
RED 0.002 125 8
RED 0.002 31.25 32
RED 0.002 7.812 128"
switch switch 6 "DropTail -1 10 40
DropTail -1 50 40
RED 0.002 10 40
RED 0.002 50 40" spread 0.137 long 75.05us
switch switch_new 6 "DropTail -1 50 40
RED 0.002 50 40" agents new
