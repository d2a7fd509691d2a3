package commands

// LoadProgress is how far the load of a data folder is.
type LoadProgress struct {
	Loaded, Total int64 // bytes
}

// loadingFields writes the fields that Redis has while it loads. They are left out once all is loaded, and if they are not known.
func (r *infoReport) loadingFields() {
	if r.x.Engine.Loading == nil {
		return
	}
	p := r.x.Engine.Loading()
	if p.Loaded >= p.Total {
		return
	}
	elapsed := max(r.x.Now()-r.host.StartedAt, 0) / 1000
	r.field("loading_start_time", r.host.StartedAt/1000)
	r.field("loading_total_bytes", p.Total)
	r.field("loading_loaded_bytes", p.Loaded)
	r.fieldf("loading_loaded_perc", "%.2f", 100*float64(p.Loaded)/float64(p.Total))
	r.field("loading_eta_seconds", max(int64(float64(elapsed)*float64(p.Total-p.Loaded)/float64(p.Loaded+1)), 1))
}
