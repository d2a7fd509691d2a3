package users

// The errors of the family, with the words of Redis where Redis has the case. Those with verbs are for
// [engine.Errorf].
const (
	errNoCategory = "ERR Unknown category '%s'"
)
