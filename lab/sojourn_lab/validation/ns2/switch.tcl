# Queries to n servers behind a switch, beside a long flow: the system of codel_dc_incast.csv.
# Prints: q skb n wq seed afct_ms p50_ms p99_ms qct_ms util loss bg_acked
array set opt {q DropTail skb 10 n 40 wq -1 seed 1 queries 20 long 75us spread 0 nic same agents reset}
array set opt $argv
Agent/TCP set window_ 10000
Agent/TCP set packetSize_ 960
Agent/TCP set minrto_ 0.01
Agent/TCP set tcpTick_ 0.0001
Agent/TCP set rtxcur_init_ 0.01
Queue set limit_ 200
Queue/RED set thresh_ 25
Queue/RED set maxthresh_ 51
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set adaptive_ 1
Queue/RED set mean_pktsize_ 1000
Queue/RED set q_weight_ $opt(wq)
ns-random $opt(seed)
set jitter [new RNG]
$jitter seed [expr $opt(seed) + 100]
set ns [new Simulator]
set client [$ns node]
set switch [$ns node]
proc wire {a b q delay} {
    global ns
    $ns simplex-link $a $b 1Gb $delay $q
    if {$q == "DropTailWide"} { $ns queue-limit $a $b 100000 }
}
proc ends {node delay} {
    global ns opt switch
    $ns simplex-link $node $switch 1Gb $delay [expr {$opt(nic) == "same" ? $opt(q) : $opt(nic)}]
    $ns simplex-link $switch $node 1Gb 75us DropTail
    $ns queue-limit $switch $node 100000
}
$ns simplex-link $switch $client 1Gb 75us $opt(q)
$ns simplex-link $client $switch 1Gb 75us DropTail
$ns queue-limit $client $switch 100000
for {set i 0} {$i <= $opt(n)} {incr i} {
    set host($i) [$ns node]
    # A spread (in us) gives every server a delay of its own: no two packets meet to the instant.
    ends $host($i) [expr {$i == $opt(n) ? $opt(long) : "[expr 75 + $i * $opt(spread)]us"}]
}
# A server's agents are made once and reset for the next query, unless agents is "new".
proc connection {i} {
    global ns host client made_for opt
    if {$opt(agents) == "reset" && [info exists made_for($i)]} {
        foreach agent $made_for($i) { $agent reset }
        return [lindex $made_for($i) 0]
    }
    set tcp [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $host($i) $tcp
    $ns attach-agent $client $sink
    $ns connect $tcp $sink
    set made_for($i) [list $tcp $sink]
    return $tcp
}
set bg [connection $opt(n)]
[new Application/FTP] attach-agent $bg
$ns at 0 "$bg send -1"
set packets [expr int(ceil($opt(skb)))]
set times {}
set waits {}
set made 0
Agent/TCP/Sack1 instproc done {} {
    global ns began times left waits asked made opt
    if {![info exists began($self)]} return
    lappend times [expr [$ns now] - $began($self)]
    unset began($self)
    incr left -1
    if {$left == 0} {
        lappend waits [expr [$ns now] - $asked]
        incr made
        if {$made == $opt(queries)} { finish } else { $ns at [expr [$ns now] + 300e-6] query }
    }
}
proc begin {tcp} {
    global ns began packets
    set began($tcp) [$ns now]
    $tcp send [expr $packets * 960]
}
proc query {} {
    global ns opt left asked jitter
    set asked [$ns now]
    set left $opt(n)
    for {set i 0} {$i < $opt(n)} {incr i} {
        $ns at [expr $asked + [$jitter uniform 0 20e-6]] "begin [connection $i]"
    }
}
set monitor [$ns monitor-queue $switch $client ""]
proc reset {} {
    global base monitor
    foreach k {pdepartures_ bdepartures_ pdrops_ parrivals_} { set base($k) [$monitor set $k] }
}
proc mean {list} { expr ([join $list +]) / double([llength $list]) }
proc finish {} {
    global ns opt times waits monitor base bg
    foreach k {pdepartures_ bdepartures_ pdrops_ parrivals_} {
        set d($k) [expr [$monitor set $k] - $base($k)]
    }
    set sorted [lsort -real $times]
    set count [llength $sorted]
    set util [expr $d(bdepartures_) * 8 / 1e9 / ([$ns now] - 0.1)]
    set loss [expr double($d(pdrops_)) / $d(parrivals_)]
    puts [format "%s,%s,%d,%s,%d,%.4f,%.4f,%.4f,%.4f,%.5f,%.6f,%d" $opt(q) $opt(skb) $opt(n) \
        $opt(wq) $opt(seed) [expr 1e3 * [mean $times]] [expr 1e3 * [lindex $sorted [expr $count / 2]]] \
        [expr 1e3 * [lindex $sorted [expr int($count * 0.99)]]] [expr 1e3 * [mean $waits]] $util \
        $loss [$bg set ack_]]
    exit 0
}
$ns at 0.1 "reset; query"
$ns run
