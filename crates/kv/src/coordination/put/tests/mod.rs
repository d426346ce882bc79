mod random_replicas;
