"""Cases of the VPA, KRR and our own that are not tests of this room, and why.

U3–U11, LM1–LM8, C2   what the VPA's updater and admission do with a recommendation: where it recommends, we set
                      nothing (test_a_vpa_that_recommends_decides); the limit trap of LM8 is W5
P1–P8, S1–S8          the HPA's own arithmetic and its loop with a VPA: rules of the linter; that a request is never
                      changed under an HPA is W11
Q1                    quantities: tests/cluster/test_quantity.py
Q2                    KRR's table cells: our table has columns of its own
G*, V*                the custom metrics API
"""
