# Five FTPs and a CBR in each direction; `hosts` 1 puts the receivers on the other direction's senders.
# Run by rerun.sh with Debian's ns2 (2.35); prints one row of a CSV file.
array set o {q DropTail bw 2 mtu 1000 buf 100 seed 1 dur 100 warm 20 start 10 hosts 0}
foreach {kk vv} $argv { set o($kk) $vv }
set ns [new Simulator]
$defaultRNG seed $o(seed)
Agent/TCP set window_ 10000
Agent/TCP set packetSize_ [expr $o(mtu)-40]
Queue/DRR set blimit_ [expr $o(buf)*$o(mtu)]; Queue/DRR set quantum_ $o(mtu); Queue/DRR set buckets_ 10
set a [$ns node]; set b [$ns node]
$ns duplex-link $a $b $o(bw)Mb 10ms $o(q)
if {$o(q) eq "DropTail"} { $ns queue-limit $a $b $o(buf); $ns queue-limit $b $a $o(buf) }
for {set i 1} {$i<=6} {incr i} {
  set dl [expr $i==6 ? 2 : 2*$i]
  foreach {x y} {a b b a} {
    set s$x$i [$ns node]; $ns duplex-link [set s$x$i] [set $x] 1Gb ${dl}ms DropTail
  }
}
for {set i 1} {$i<=6} {incr i} {
  foreach {x y} {a b b a} {
    if {$o(hosts)} { set d [set s$y$i] } else { set d [set $y] }
    if {$i==6} {
      set u [new Agent/UDP]; $u set packetSize_ 1500; $ns attach-agent [set s$x$i] $u
      set k($x$i) [new Agent/LossMonitor]; $ns attach-agent $d $k($x$i); $ns connect $u $k($x$i)
      set c [new Application/Traffic/CBR]; $c set packetSize_ $o(mtu); $c set rate_ [expr $o(bw)*0.1]Mb; $c set random_ 1; $c attach-agent $u
      $ns at [$defaultRNG uniform 0 $o(start)] "$c start"
    } else {
      set t [new Agent/TCP/Newreno]; set k($x$i) [new Agent/TCPSink]
      $ns attach-agent [set s$x$i] $t; $ns attach-agent $d $k($x$i); $ns connect $t $k($x$i)
      set f [new Application/FTP]; $f attach-agent $t
      $ns at [$defaultRNG uniform 0 $o(start)] "$f start"
    }
  }
}
set qm [$ns monitor-queue $a $b ""]
set ig [new Integrator]; $qm set-pkts-integrator $ig
proc base {} { global qm ig o ns B k
  for {set i 1} {$i<=6} {incr i} { set B(k$i) [$k(a$i) set bytes_] }
  set B(arr) [$qm set parrivals_]; set B(drop) [$qm set pdrops_]; set B(bd) [$qm set bdepartures_]
  $ig newpoint [$ns now] [$qm set pkts_]; set B(area) [$ig set sum_]
}
proc fin {} { global qm ig o ns B k
  $ig newpoint [$ns now] [$qm set pkts_]
  set T [expr $o(dur)-$o(warm)]
  set all 0; set ftp 0; set squares 0
  for {set i 1} {$i<=6} {incr i} {
    set x [expr 8e-6*([$k(a$i) set bytes_]-$B(k$i))/$T]
    set all [expr $all+$x]
    if {$i<6} { set ftp [expr $ftp+$x]; set squares [expr $squares+$x*$x] }
  }
  puts [format "%s,%s,%s,%s,%s,%.3f,%.5f,%.4f,%.2f,%.4f,%.4f" $o(q) $o(bw) $o(mtu) $o(buf) $o(seed) [expr 1.0*([$qm set pdrops_]-$B(drop))/$T] [expr 1.0*([$qm set pdrops_]-$B(drop))/([$qm set parrivals_]-$B(arr))] [expr 8.0*([$qm set bdepartures_]-$B(bd))/$T/$o(bw)/1e6] [expr ([$ig set sum_]-$B(area))/$T] $all [expr $ftp*$ftp/5/$squares]]
  exit 0
}
$ns at $o(warm) base
$ns at $o(dur) fin
$ns run
