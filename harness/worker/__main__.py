from harness.worker.jobs import main

main()
