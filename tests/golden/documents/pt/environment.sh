accelerate env
