"""The clients called directly, with none of the harness's code: does the lab measure what a plain script takes?"""
