# SACK and four CBR sources over 10 Mbit/s; `trunk` 1 puts one more link before the bottleneck.
# Run by rerun.sh with Debian's ns2 (2.35); prints one row of a CSV file.
array set o {q TD n 16 buf 300 seed 1 dur 300 warm 100 trunk 0}
foreach {kk vv} $argv { set o($kk) $vv }
set ns [new Simulator]
$defaultRNG seed $o(seed)
Agent/TCP set window_ 10000
set r1 [$ns node]; set r2 [$ns node]; set r0 $r1
if {$o(trunk)} { set r0 [$ns node]; $ns duplex-link $r0 $r1 100Mb 0ms DropTail }
if {$o(q) eq "TD"} {
  Queue/DropTail set limit_ 50
  $ns simplex-link $r1 $r2 10Mb 50ms DropTail
} else {
  Queue/RED set bytes_ false; Queue/RED set queue_in_bytes_ false
  Queue/RED set thresh_ [expr $o(buf)*3/20]; Queue/RED set maxthresh_ [expr $o(buf)*13/20]
  Queue/RED set q_weight_ 0.002; Queue/RED set linterm_ 10
  Queue/RED set gentle_ [expr {$o(q) eq "GRED"}]
  $ns simplex-link $r1 $r2 10Mb 50ms RED
}
$ns queue-limit $r1 $r2 $o(buf)
$ns simplex-link $r2 $r1 10Mb 50ms DropTail
$ns queue-limit $r2 $r1 100000
for {set h 0} {$h<4} {incr h} {
  set s($h) [$ns node]; set d($h) [$ns node]
  $ns duplex-link $s($h) $r0 100Mb [expr 10*($h+1)]ms DropTail
  $ns duplex-link $r2 $d($h) 100Mb 0.1ms DropTail
  set u($h) [new Agent/UDP]; $u($h) set packetSize_ 1000
  $ns attach-agent $s($h) $u($h)
  set m($h) [new Agent/LossMonitor]; $ns attach-agent $d($h) $m($h)
  $ns connect $u($h) $m($h)
  set c($h) [new Application/Traffic/CBR]
  $c($h) set packetSize_ 573; $c($h) set rate_ 250Kb; $c($h) set random_ 1
  $c($h) attach-agent $u($h)
  $ns at [expr [$defaultRNG uniform 0 10]] "$c($h) start"
}
for {set i 0} {$i<$o(n)} {incr i} {
  set h [expr $i%4]
  set t($i) [new Agent/TCP/Sack1]; set k($i) [new Agent/TCPSink/Sack1]
  set w($i) [expr int([$defaultRNG uniform 1400 1629])]
  $t($i) set packetSize_ [expr $w($i)-40]
  $ns attach-agent $s($h) $t($i); $ns attach-agent $d($h) $k($i); $ns connect $t($i) $k($i)
  set f($i) [new Application/FTP]; $f($i) attach-agent $t($i)
  $ns at [expr [$defaultRNG uniform 0 10]] "$f($i) start"
}
set qm [$ns monitor-queue $r1 $r2 ""]
set ig [new Integrator]
$qm set-pkts-integrator $ig
set ds [new Samples]
$qm set-delay-samples $ds
set sum 0; set sq 0; set cnt 0
proc sample {} { global qm sum sq cnt ns
  set x [$qm set pkts_]; set sum [expr $sum+$x]; set sq [expr $sq+1.0*$x*$x]; incr cnt
  $ns after 0.01 sample
}
proc base {} { global qm ig o ns b m t ds
  $ds reset
  sample
  for {set i 0} {$i<$o(n)} {incr i} { set b(a$i) [$t($i) set ack_] }
  set b(arr) [$qm set parrivals_]; set b(drop) [$qm set pdrops_]; set b(bd) [$qm set bdepartures_]
  $ig newpoint [$ns now] [$qm set pkts_]; set b(area) [$ig set sum_]
  for {set h 0} {$h<4} {incr h} { set b(l$h) [$m($h) set nlost_]; set b(r$h) [$m($h) set npkts_] }
}
proc fin {} { global qm ig o ns b m t w ds sum sq cnt
  $ig newpoint [$ns now] [$qm set pkts_]
  set T [expr $o(dur)-$o(warm)]
  set l 0; set r 0
  for {set h 0} {$h<4} {incr h} { incr l [expr [$m($h) set nlost_]-$b(l$h)]; incr r [expr [$m($h) set npkts_]-$b(r$h)] }
  set mu [expr 1.0*$sum/$cnt]
  set good 0; set squares 0
  for {set i 0} {$i<$o(n)} {incr i} {
    set x [expr 8e-6*$w($i)*([$t($i) set ack_]-$b(a$i))/$T]
    set good [expr $good+$x]; set squares [expr $squares+$x*$x]
  }
  puts [format "%s,%d,%d,Sack1,%s,%.3f,%.5f,%.5f,%.3f,%.3f,%.3f,%.4f,%.4f" $o(q) $o(n) $o(buf) $o(seed) [expr ([$ig set sum_]-$b(area))/$T] [expr 1.0*([$qm set pdrops_]-$b(drop))/([$qm set parrivals_]-$b(arr))] [expr 1.0*$l/($l+$r)] [expr sqrt($sq/$cnt-$mu*$mu)] [expr 1000*[$ds mean]] [expr 1000*sqrt([$ds variance])] $good [expr $good*$good/$o(n)/$squares]]
  exit 0
}
$ns at $o(warm) base
$ns at $o(dur) fin
$ns run
