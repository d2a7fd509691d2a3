package admin

import "mayfly/commands/engine"

// The errors of the family, with the words of Redis where Redis has the case. Those with verbs are for
// [engine.Errorf].
const (
	errNoAuthHello    = engine.Error("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	errNoPassword     = engine.Error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	errNoProto        = engine.Error("NOPROTO unsupported protocol version")
	errSaving         = engine.Error("ERR Background save already in progress")
	errNoShutdown     = engine.Error("ERR No shutdown in progress.")
	errMonitorInMulti = engine.Error("ERR MONITOR isn't allowed for DENY BLOCKING client")
	errSlowlogCount   = engine.Error("ERR count should be greater than or equal to -1")
	errShardInMulti   = engine.Error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
	errProtoVersion   = engine.Error("ERR Protocol version is not an integer or out of range")
	errKillID         = engine.Error("ERR client-id should be greater than 0")
	errPauseMode      = engine.Error("ERR CLIENT PAUSE mode must be WRITE or ALL")
	errUnblockReason  = engine.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	errNoSuchClient   = engine.Error("ERR No such client")
	errClientID       = engine.Error("ERR Invalid client ID")
	errNoKeys         = engine.Error("ERR The command has no key arguments")
	errNoSuchCommand  = engine.Error("ERR Invalid command specified")
	errKeysArity      = engine.Error("ERR Invalid number of arguments specified for command")
	errKeysInvalid    = engine.Error("ERR Invalid arguments specified for command")
	errBackupPath     = engine.Error("ERR invalid path of a backup: it names a new folder")
	errBackupInside   = engine.Error("ERR a backup cannot be in the data folder")
	errSetInfoOption  = "ERR Unrecognized option '%s'"
	errClientType     = "ERR Unknown client type '%s'"
	errClientAge      = "ERR %s is not an integer or out of range"
	errClientAgeZero  = "ERR %s should be greater than 0"
	errClientFlags    = "ERR Unknown flags found in the provided filter: %s"
	errNoSuchUser     = "ERR No such user '%s'"
	errHelloOption    = "ERR Syntax error in HELLO option '%s'"
	errNoSamples      = "ERR No samples available for event '%s'"
	errInProgress     = "ERR %s already in progress"
)
