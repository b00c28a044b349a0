"""The clients called directly, with none of the harness's code: is the lab's figure that of a plain script?"""
