# S1 of the bench in ns-2: 300 long NewReno flows over a RED bottleneck of 45 Mbit/s, 200 s. Prints the
# number of packets that the bottleneck sent.
set ns [new Simulator]
set rng [new RNG]
$rng seed 1
Queue/RED set thresh_ 150
Queue/RED set maxthresh_ 300
Queue/RED set q_weight_ 0.002
Queue/RED set linterm_ 10
Queue/RED set gentle_ true
Queue/RED set bytes_ true
Queue/RED set queue_in_bytes_ true
Queue/RED set mean_pktsize_ 500
Agent/TCP set window_ 10000
Agent/TCP set packetSize_ 460
set r1 [$ns node]
set r2 [$ns node]
$ns simplex-link $r2 $r1 45Mb 1ms DropTail
$ns simplex-link $r1 $r2 45Mb 1ms RED
$ns queue-limit $r1 $r2 600
$ns queue-limit $r2 $r1 100000
set monitor [$ns monitor-queue $r1 $r2 ""]
for {set i 0} {$i < 300} {incr i} {
    set n [$ns node]
    set rtt [$rng uniform 0.04 0.2]
    $ns duplex-link $n $r1 1000Mb [expr ($rtt - 0.002) / 2.0] DropTail
    $ns queue-limit $n $r1 100000
    $ns queue-limit $r1 $n 100000
    set tcp [new Agent/TCP/Newreno]
    set sink [new Agent/TCPSink]
    $ns attach-agent $n $tcp
    $ns attach-agent $r2 $sink
    $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at [$rng uniform 0 10] "$ftp start"
}
$ns at 200.0 "puts \[$monitor set pdepartures_\]; exit 0"
$ns run
