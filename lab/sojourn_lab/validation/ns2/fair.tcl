# TCPs and one UDP source from a node each.
# Run by rerun.sh with Debian's ns2 (2.35); prints one row of a CSV file.
array set o {topo 3v q DropTail buf 30000 seed 1 dur 120 warm 20 nic 50 start 10}
foreach {kk vv} $argv { set o($kk) $vv }
set ns [new Simulator]
$defaultRNG seed $o(seed)
Agent/TCP set window_ 10000
Agent/TCP set packetSize_ 960
Queue set limit_ $o(nic)
array set T {3u {{10 10 1} 5Mb 10Mb 4Mb} 3v {{50 100 1} 5Mb 10Mb 4Mb} 5 {{2 20 100 200 50} 10Mb 2.5Mb 2.5Mb}}
lassign $T($o(topo)) delays rate access udp
set r1 [$ns node]; set r2 [$ns node]
if {$o(q) eq "DropTail"} {
  Queue/DropTail set queue_in_bytes_ true; Queue/DropTail set mean_pktsize_ 1000
  $ns simplex-link $r1 $r2 $rate 1ms DropTail
  Queue/DropTail set queue_in_bytes_ false
  $ns queue-limit $r1 $r2 [expr $o(buf)/1000]
} else {
  Queue/DRR set blimit_ $o(buf); Queue/DRR set quantum_ 1000; Queue/DRR set buckets_ 10
  $ns simplex-link $r1 $r2 $rate 1ms DRR
}
$ns simplex-link $r2 $r1 $rate 1ms DropTail
$ns queue-limit $r2 $r1 100000
set n [llength $delays]
for {set i 0} {$i<$n} {incr i} {
  set s [$ns node]; set d [$ns node]
  $ns duplex-link $s $r1 $access [lindex $delays $i]ms DropTail
  $ns duplex-link $r2 $d 10Mb 1ms DropTail
  if {$i == $n-1} {
    set u [new Agent/UDP]; $ns attach-agent $s $u
    set k($i) [new Agent/LossMonitor]; $ns attach-agent $d $k($i); $ns connect $u $k($i)
    set c [new Application/Traffic/CBR]; $c set packetSize_ 1000; $c set rate_ $udp; $c set random_ 1; $c attach-agent $u
    $ns at [$defaultRNG uniform 0 $o(start)] "$c start"
  } else {
    set t [new Agent/TCP/Newreno]; set k($i) [new Agent/TCPSink]
    $ns attach-agent $s $t; $ns attach-agent $d $k($i); $ns connect $t $k($i)
    set f [new Application/FTP]; $f attach-agent $t
    $ns at [$defaultRNG uniform 0 $o(start)] "$f start"
  }
}
proc base {} { global k b n; for {set i 0} {$i<$n} {incr i} { set b($i) [$k($i) set bytes_] } }
proc fin {} { global k b n o
  set r ""; set sum 0; set squares 0
  for {set i 0} {$i<$n} {incr i} {
    set x [expr 8e-6*([$k($i) set bytes_]-$b($i))/($o(dur)-$o(warm))]
    set sum [expr $sum+$x]; set squares [expr $squares+$x*$x]
    lappend r [format %.4f $x]
  }
  while {[llength $r] < 5} { lappend r "" }
  puts "$o(topo),$o(q),$o(buf),$o(seed),[join $r ,],[format %.4f [expr $sum*$sum/$n/$squares]]"
  exit 0
}
$ns at $o(warm) base
$ns at $o(dur) fin
$ns run
