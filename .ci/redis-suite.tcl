# Lets Redis' tests of streams run against logs of deaths, which nothing but a death can write: .ci/redis-suite
# appends this file to tests/support/redis.tcl. Each stream of a test becomes the log of a container. XADD lets
# a key of that container expire, and returns the id of its entry. The value of the key is the list of fields, and
# replies show it in place of the fields of a death. An explicit id stands for the one that the server has drawn.
# DEL and FLUSHALL switch logs off, EXISTS asks for a log, and CONFIG SET of stream-node-* does nothing. All other
# replies are the server's. XADD and these commands run at once in a MULTI too.

namespace eval ::deaths {
    variable control {} ;# the connection for what is not in the test
    variable live       ;# array: container -> 1 if it has a log
    variable key        ;# array: container -> name in the test
    variable ids        ;# array: container -> list of {shown drawn}, ascending
    variable explicit   ;# array: container -> 1 if a test has chosen an id
    variable shown      ;# array: drawn id -> id in the test
    variable made       ;# array: container -> 1 if it exists
    variable items 0
    array set live {}
    array set key {}
    array set made {}
    array set shown {}
}

rename ::redis::__dispatch__raw__ ::redis::send
rename ::redis::redis_bulk_read ::redis::bulk
rename ::redis::redis_multi_bulk_read ::redis::multi_bulk

proc ::deaths::call {args} {
    variable control
    if {$control eq {}} {
        regexp {\d+$} [redis $::host $::port] control
    }
    ::redis::send $control [lindex $args 0] [lrange $args 1 end]
}

proc ::deaths::container {name} {
    variable key
    regsub -all {[^A-Za-z0-9]} $name _ c
    set c log_[pid]_$c
    set key($c) $name
    return $c
}

proc ::deaths::stream {name} {
    return __keyevent@[container $name]__:expired
}

proc ::deaths::start {c} {
    variable live
    variable ids
    variable explicit
    variable made
    if {[info exists live($c)]} return
    if {![info exists made($c)]} {
        call CONTAINER.CREATE $c TTL -1
        set made($c) 1
    }
    call CONTAINER.SET $c LOG 1000000
    array set live [list $c 1]
    set ids($c) {}
    set explicit($c) 0
}

proc ::deaths::stop {c} {
    variable live
    if {![info exists live($c)]} {return 0}
    unset live($c)
    after 20 ;# a client that has just sent its XREADGROUP waits by now
    call CONTAINER.SET $c LOG OFF
    return 1
}

proc ::deaths::less {a b} {
    lassign [split $a -] ams aseq
    lassign [split $b -] bms bseq
    expr {$ams < $bms || $ams == $bms && $aseq < $bseq}
}

# drawn returns the id of the server for one of a test. An id of no entry lies directly behind the entry before it.
proc ::deaths::drawn {c token {rest 0}} {
    variable ids
    variable live
    variable explicit
    set mark [expr {[string index $token 0] eq "(" ? "(" : ""}]
    set id [string range $token [string length $mark] end]
    if {![info exists live($c)] || !$explicit($c) || ![regexp {^\d+(-\d+)?$} $id]} {return $token}
    if {![string match *-* $id]} {append id -$rest}
    set found {}
    foreach pair $ids($c) {
        if {[less $id [lindex $pair 0]]} break
        set found $pair
    }
    lassign $found name real
    if {$found eq {}} {return ${mark}[expr {$id eq "0-0" ? "0-0" : "0-1"}]}
    if {$name ne $id} {
        lassign [split $real -] ms seq
        set real $ms-[incr seq]
    }
    return $mark$real
}

# xadd lets a key die, and waits for its entry.
proc ::deaths::xadd {name options} {
    variable ids
    variable explicit
    variable shown
    variable items
    variable live
    set c [container $name]
    set trim {}
    for {set i 0} {1} {incr i} {
        set word [string toupper [lindex $options $i]]
        if {$word eq "NOMKSTREAM"} {
            if {![info exists live($c)]} {return {}}
        } elseif {$word in {MAXLEN MINID}} {
            set from $i
            if {[lindex $options $i+1] in {= ~}} {incr i}
            incr i
            set trim [lrange $options $from $i]
        } elseif {$word eq "LIMIT"} {
            lappend trim LIMIT [lindex $options [incr i]]
        } else {
            break
        }
    }
    set id [lindex $options $i]
    set fields [lrange $options $i+1 end]
    if {$fields eq {} || [llength $fields] % 2} {error "ERR wrong number of arguments for 'xadd' command"}
    start $c
    if {$id ne "*"} {
        if {![string match *-* $id]} {append id -0}
        if {$ids($c) ne {} && ![less [lindex $ids($c) end 0] $id]} {
            error "ERR The ID specified in XADD is equal or smaller than the target stream top item"
        }
        set explicit($c) 1
    }
    set before [dict get [call XINFO STREAM [stream $name]] last-generated-id]
    call SELECT $c
    call SET item[incr items] $fields PX 1
    set deadline [expr {[clock milliseconds] + 10000}]
    while {1} {
        set real [dict get [call XINFO STREAM [stream $name]] last-generated-id]
        if {$real ne $before} break
        if {[clock milliseconds] > $deadline} {error "a key with PX 1 is not in the log after 10 s"}
    }
    if {$id eq "*"} {set id $real} else {set shown($real) $id}
    lappend ids($c) [list $id $real]
    if {$trim ne {}} {call XTRIM [stream $name] {*}[trimming $c $trim]}
    return $id
}

proc ::deaths::trimming {c argv} {
    if {[string toupper [lindex $argv 0]] ne "MINID"} {return $argv}
    set at [expr {[lindex $argv 1] in {= ~} ? 2 : 1}]
    lreplace $argv $at $at [drawn $c [lindex $argv $at]]
}

proc ::deaths::replaced {c argv from to {rest 0}} {
    for {set i $from} {$i <= $to && $i < [llength $argv]} {incr i} {
        lset argv $i [drawn $c [lindex $argv $i] $rest]
    }
    return $argv
}

proc ::redis::__dispatch__raw__ {id method argv} {
    set word [string toupper $method]
    if {![string match X* $word] && $word ni {DEL EXISTS FLUSHALL FLUSHDB CONFIG}} {
        return [::redis::send $id $method $argv]
    }
    set at [expr {$word in {XGROUP XINFO} && [llength $argv] > 1 ? 1 : 0}]
    set name [lindex $argv $at]
    set c [::deaths::container $name]
    switch $word {
        CONFIG {
            # The nodes of Redis' streams: trimming with ~ is exact here.
            if {[string match stream-node-* [lindex $argv 1]]} {return OK}
            return [::redis::send $id $method $argv]
        }
        XADD {
            return [::deaths::xadd $name [lrange $argv 1 end]]
        }
        DEL {
            if {[::deaths::stop $c]} {return 1}
            return [::redis::send $id $method $argv]
        }
        EXISTS {
            if {[info exists ::deaths::live($c)]} {return 1}
            return [::redis::send $id $method $argv]
        }
        FLUSHALL - FLUSHDB {
            foreach c [array names ::deaths::live] {::deaths::stop $c}
            return [::redis::send $id $method $argv]
        }
        XREAD - XREADGROUP {
            set streams [lsearch -nocase $argv STREAMS]
            set n [expr {([llength $argv] - $streams - 1) / 2}]
            if {$streams < 0} {set n 0}
            for {set i [expr {$streams + 1}]} {$i <= $streams + $n} {incr i} {
                set c [::deaths::container [lindex $argv $i]]
                lset argv [expr {$i + $n}] [::deaths::drawn $c [lindex $argv $i+$n]]
                lset argv $i [::deaths::stream [lindex $argv $i]]
            }
            return [::redis::send $id $method $argv]
        }
        XRANGE {set argv [::deaths::replaced $c [::deaths::replaced $c $argv 1 1] 2 2 18446744073709551615]}
        XREVRANGE {set argv [::deaths::replaced $c [::deaths::replaced $c $argv 2 2] 1 1 18446744073709551615]}
        XDEL {set argv [::deaths::replaced $c $argv 1 [llength $argv]]}
        XACK {set argv [::deaths::replaced $c $argv 2 [llength $argv]]}
        XCLAIM {
            set argv [::deaths::replaced $c $argv 4 [expr {[lsearch -regexp -start 4 $argv {^[A-Za-z]}] < 0 ? [llength $argv]
                : [lsearch -regexp -start 4 $argv {^[A-Za-z]}] - 1}]]
        }
        XAUTOCLAIM {set argv [::deaths::replaced $c $argv 4 4]}
        XTRIM {set argv [list $name {*}[::deaths::trimming $c [lrange $argv 1 end]]]}
        XPENDING {
            set from [expr {[string equal -nocase [lindex $argv 2] IDLE] ? 4 : 2}]
            set argv [::deaths::replaced $c [::deaths::replaced $c $argv $from $from] [expr {$from + 1}] [expr {$from + 1}] 18446744073709551615]
        }
        XGROUP {
            if {[lsearch -nocase $argv MKSTREAM] > 0} {::deaths::start $c}
            set argv [::deaths::replaced $c $argv 3 3]
        }
    }
    if {$argv ne {} && !($word in {XGROUP XINFO} && $at == 0)} {
        if {!($word in {XGROUP XINFO} && [string equal -nocase [lindex $argv 0] HELP])} {
            lset argv $at [::deaths::stream $name]
        }
    }
    ::redis::send $id $method $argv
}

proc ::redis::redis_bulk_read {fd} {
    set text [::redis::bulk $fd]
    if {[info exists ::deaths::shown($text)]} {return $::deaths::shown($text)}
    if {[regexp {^__keyevent@(.*)__:expired$} $text - c] && [info exists ::deaths::key($c)]} {return $::deaths::key($c)}
    return $text
}

proc ::redis::redis_multi_bulk_read {id fd} {
    set list [::redis::multi_bulk $id $fd]
    if {[lindex $list 0] eq "id" && [lindex $list 2] eq "cause" && [dict exists $list value]} {return [dict get $list value]}
    return $list
}
