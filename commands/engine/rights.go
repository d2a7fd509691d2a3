package engine

// LogWrongPasswords logs the wrong passwords since the last line, unless that was a moment ago.
func (e *Engine) LogWrongPasswords() {
	r, ok := e.Auth.Report()
	if !ok {
		return
	}
	e.Log.Warn().Str("addr", r.Worst).Int("wrong_passwords", r.OfWorst).Int("of_all_addresses", r.Total).Int("other_addresses", r.Others).
		Msg("clients gave a wrong password; their next attempts are delayed")
}

// awaitsDelay reports whether a command is an attempt to authenticate that has to wait, and until when.
func (e *Engine) awaitsDelay(s *Session, r *Row, args []string) <-chan struct{} {
	if r.Secrets == nil || !e.Host.PasswordSet() || len(r.Secrets(args)) == 0 {
		return nil
	}
	return e.Auth.Wait(&s.Guesser)
}
