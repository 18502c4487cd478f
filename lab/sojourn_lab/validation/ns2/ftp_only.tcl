# Long flows with the propagation times in the file `rtts` over 45 Mbit/s.
# Run by rerun.sh with Debian's ns2 (2.35); prints one row of a CSV file.
array set o {q DropTail n 30 qmax 300000 seed 1 rtts "" dur 200 warm 150 tcp Newreno}
foreach {kk vv} $argv { set o($kk) $vv }
set ns [new Simulator]
$defaultRNG seed $o(seed)
Agent/TCP set window_ 10000
Agent/TCP set packetSize_ 460
set r1 [$ns node]; set r2 [$ns node]
if {$o(q) eq "DropTail"} {
  Queue/DropTail set queue_in_bytes_ true; Queue/DropTail set mean_pktsize_ 500
  $ns simplex-link $r1 $r2 45Mb 10ms DropTail
  Queue/DropTail set queue_in_bytes_ false
} elseif {$o(q) eq "PI"} {
  # Gains by the design of Hollot et al. for R+ = 200 ms and N- = 100: the zero cancels the pole of
  # the window, the loop crosses 1 there, the bilinear transform at 160 Hz gives a and b.
  set C [expr 45e6/8/500]; set R 0.2; set N 100; set wg [expr 2.0*$N/($R*$R*$C)]; set T [expr 1/160.0]
  set K [expr $wg*sqrt($wg*$wg*$R*$R+1)*(2.0*$N)*(2.0*$N)/pow($R*$C,3)]
  Queue/PI set a_ [expr $K/$wg+$K*$T/2]; Queue/PI set b_ [expr $K/$wg-$K*$T/2]; Queue/PI set w_ 160
  Queue/PI set bytes_ true; Queue/PI set queue_in_bytes_ true; Queue/PI set mean_pktsize_ 500
  Queue/PI set qref_ [expr 3*$o(qmax)/4000]
  $ns simplex-link $r1 $r2 45Mb 10ms PI
} elseif {$o(q) eq "REM"} {
  Queue/REM set qib_ true; Queue/REM set mean_pktsize_ 500; Queue/REM set pbo_ [expr 3*$o(qmax)/4000]
  Queue/REM set gamma_ 0.001; Queue/REM set phi_ 1.001; Queue/REM set pupdtime_ 0.001
  $ns simplex-link $r1 $r2 45Mb 10ms REM
} elseif {$o(q) eq "AVQ"} {
  Queue/Vq set queue_in_bytes_ true; Queue/Vq set mean_pktsize_ 500; Queue/Vq set gamma_ 1.0
  $ns simplex-link $r1 $r2 45Mb 10ms Vq
} else {
  Queue/RED set bytes_ true; Queue/RED set queue_in_bytes_ true; Queue/RED set mean_pktsize_ 500
  Queue/RED set thresh_ [expr $o(qmax)/2000]; Queue/RED set maxthresh_ [expr $o(qmax)/1000]
  Queue/RED set q_weight_ 0.002; Queue/RED set linterm_ 10; Queue/RED set gentle_ true
  if {$o(q) eq "ARED"} { Queue/RED set adaptive_ 1; Queue/RED set bottom_ 0.01 }
  $ns simplex-link $r1 $r2 45Mb 10ms RED
}
$ns queue-limit $r1 $r2 [expr $o(qmax)/500]
$ns simplex-link $r2 $r1 45Mb 10ms DropTail
$ns queue-limit $r2 $r1 100000
set fh [open $o(rtts)]; set R [split [string trim [read $fh]]]; close $fh
set i 0
foreach rtt $R {
  set s [$ns node]
  $ns duplex-link $s $r1 100Mb [expr ($rtt-0.02)/2] DropTail
  set t($i) [new Agent/TCP/$o(tcp)]
  if {$o(tcp) eq "Sack1"} { set k [new Agent/TCPSink/Sack1] } else { set k [new Agent/TCPSink] }
  $ns attach-agent $s $t($i); $ns attach-agent $r2 $k; $ns connect $t($i) $k
  set f [new Application/FTP]; $f attach-agent $t($i)
  $ns at [$defaultRNG uniform 0 10] "$f start"
  incr i
}
set qm [$ns monitor-queue $r1 $r2 ""]
set ig [$qm get-bytes-integrator]
set sum 0; set sq 0; set cnt 0
proc sample {} { global qm sum sq cnt ns
  set x [$qm set size_]; set sum [expr $sum+$x]; set sq [expr $sq+1.0*$x*$x]; incr cnt
  $ns after 0.001 sample
}
proc base {} { global qm ig o ns b
  set b(arr) [$qm set parrivals_]; set b(drop) [$qm set pdrops_]; set b(bd) [$qm set bdepartures_]
  $ig newpoint [$ns now] [$qm set size_]; set b(area) [$ig set sum_]
  sample
}
proc fin {} { global qm ig o ns b sum sq cnt
  $ig newpoint [$ns now] [$qm set size_]
  set T [expr $o(dur)-$o(warm)]
  set mu [expr $sum/$cnt]
  puts [format "%s,%d,%d,%s,%s,%.1f,%.1f,%.6f,%.5f" $o(q) $o(n) $o(qmax) $o(tcp) $o(seed) [expr ([$ig set sum_]-$b(area))/$T] [expr sqrt($sq/$cnt-$mu*$mu)] [expr 1.0*([$qm set pdrops_]-$b(drop))/([$qm set parrivals_]-$b(arr))] [expr 8.0*([$qm set bdepartures_]-$b(bd))/$T/45e6]]
  exit 0
}
$ns at $o(warm) base
$ns at $o(dur) fin
$ns run
